// Rows of a table, filtered, sorted and searched. Text is set as text, never as markup.
(function () {
  const source = document.getElementById("ledger-cells");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const form = document.getElementById("filters");
  const table = document.getElementById("ledger");
  const body = table.querySelector("tbody");
  const shown = document.getElementById("shown");
  const more = document.getElementById("more");
  const page = 100;
  let limit = page;
  let order = null;

  const value = (field, row) => {
    const { words, cells } = data.fields[field];
    return words && cells[row] !== null ? words[cells[row]] : cells[row];
  };
  const number = (x) => (Number.isInteger(x) ? x.toLocaleString("en") : String(Math.abs(x) >= 1e-4 ? Number(x.toPrecision(4)) : x.toExponential(1))).replace("-", "−");
  const said = (field, row) => {
    const found = value(field, row);
    return found === null ? "" : typeof found === "number" ? number(found) : found;
  };
  const joined = (fields, row, by) => fields.map((field) => said(field, row)).filter((text) => text !== "").join(by);
  const every = Array.from({ length: data.rows }, (_, row) => row);
  const texts = every.map((row) => data.columns.flatMap((column) => [...column.fields, ...column.small]).map((field) => said(field, row)).join(" ").toLowerCase());

  for (const select of form.querySelectorAll("select")) {
    for (const word of [...new Set(every.map((row) => value(select.name, row)))]) {
      if (word === null || word === "") continue;
      const option = document.createElement("option");
      option.value = option.textContent = word;
      select.append(option);
    }
  }

  function cell(column, row) {
    const element = document.createElement(column.kind === "name" ? "th" : "td");
    if (column.kind === "name") element.scope = "row";
    else if (column.kind !== "number") element.className = column.kind;
    element.textContent = joined(column.fields, row, " · ") || "—";
    const small = joined(column.small, row, column.kind === "number" ? " to " : " ");
    if (small) {
      const detail = document.createElement("small");
      detail.textContent = small;
      element.append(" ", detail);
    }
    if (column.dot) {
      const dot = document.createElement("span");
      dot.className = "dot " + joined(column.fields, row, "").replaceAll(" ", "-");
      element.prepend(dot);
    }
    return element;
  }

  function line(row) {
    const tr = document.createElement("tr");
    tr.append(...data.columns.map((column) => cell(column, row)));
    return tr;
  }

  function sorted(rows) {
    if (!order) return rows;
    const key = (row) => value(data.columns[order.column].fields[0], row);
    const compare = (a, b) => (typeof a === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
    return rows.slice().sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === null || y === null) return (x === null) - (y === null); // absent comes last either way
      return order.down ? compare(y, x) : compare(x, y);
    });
  }

  function draw() {
    const chosen = Object.fromEntries(new FormData(form));
    const words = chosen.text.toLowerCase().split(/\s+/).filter(Boolean);
    delete chosen.text;
    const asked = Object.entries(chosen).filter(([, wanted]) => wanted);
    const found = sorted(every.filter((row) => asked.every(([field, wanted]) => value(field, row) === wanted) && words.every((word) => texts[row].includes(word))));
    body.replaceChildren(...found.slice(0, limit).map(line));
    shown.textContent = found.length.toLocaleString("en") + " of " + data.rows.toLocaleString("en") + " rows";
    more.hidden = found.length <= limit;
  }

  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.title = "Sort by this column";
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      order = { column, down: order && order.column === column ? !order.down : data.columns[column].kind === "number" };
      table.querySelectorAll("thead th").forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      draw();
    });
  });

  // A link that names rows leads to them.
  document.querySelectorAll("a[data-metric]").forEach((link) =>
    link.addEventListener("click", () => {
      form.reset();
      for (const name of ["metric", "model", "dataset"]) if (form.elements[name] && link.dataset[name]) form.elements[name].value = link.dataset[name];
      limit = page;
      draw();
    }),
  );

  form.addEventListener("input", () => { limit = page; draw(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => { limit += 5 * page; draw(); });
  if (table.dataset.print === "all") addEventListener("beforeprint", () => { limit = Infinity; draw(); });
  form.hidden = false;
  draw();
})();
