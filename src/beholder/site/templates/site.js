// Sort a table by a column; search the models of all tables. Text is set as text, never as markup.
(function () {
  document.querySelectorAll(".board").forEach((table) =>
    table.querySelectorAll("thead th").forEach((head, column) => {
      head.tabIndex = 0;
      const sort = () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        table.querySelectorAll("thead th").forEach((each) => each.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = (row) => {
          const cell = row.children[column];
          const value = cell.dataset.value ?? cell.textContent.trim();
          return value === "—" || cell.classList.contains("apart") ? null : isNaN(Number(value)) ? value : Number(value);
        };
        const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
        const body = table.tBodies[0];
        const rows = [...body.rows].sort((a, b) => {
          const [x, y] = [key(a), key(b)];
          if (x === null || y === null) return (x === null) - (y === null);
          return down ? compare(y, x) : compare(x, y);
        });
        body.append(...rows);
      };
      head.addEventListener("click", (event) => event.target.tagName === "A" || sort());
      head.addEventListener("keydown", (event) => event.key === "Enter" && event.target === head && sort());
    }),
  );
  const search = document.getElementById("search");
  if (!search) return;
  const rows = [...document.querySelectorAll("section:not(#runs) .board tbody tr")];
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const name = row.children[0].textContent.toLowerCase();
      row.hidden = !words.every((word) => name.includes(word));
      shown += !row.hidden;
    }
    document.getElementById("matches").textContent = shown + " of " + rows.length + " rows";
  });
})();
