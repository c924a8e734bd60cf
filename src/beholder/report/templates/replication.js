// The ledger's rows, filtered. Text is set as text, never as markup.
(function () {
  const data = JSON.parse(document.getElementById("ledger-cells").textContent);
  const form = document.getElementById("filters");
  const body = document.querySelector("#ledger tbody");
  const shown = document.getElementById("shown");
  const more = document.getElementById("more");
  const page = 100;
  let limit = page;
  const rows = data.rows.map((row) => Object.fromEntries(data.columns.map((name, i) => [name, row[i]])));
  rows.forEach((row) => (row.all = [row.where, row.model, row.what, row.verdict].join(" ").toLowerCase()));

  for (const select of form.querySelectorAll("select")) {
    for (const value of new Set(rows.map((row) => row[select.name]))) {
      if (!value) continue;
      const option = document.createElement("option");
      option.value = option.textContent = value;
      select.append(option);
    }
  }

  function cell(kind, text, small, name) {
    const element = document.createElement(kind);
    element.textContent = text;
    if (name) element.className = name;
    if (small) {
      const detail = document.createElement("small");
      detail.textContent = small;
      element.append(" ", detail);
    }
    return element;
  }

  function line(row) {
    const tr = document.createElement("tr");
    const verdict = cell("td", row.verdict, row.reason, "reason");
    const dot = document.createElement("span");
    dot.className = "dot " + row.verdict.replaceAll(" ", "-");
    verdict.prepend(dot);
    tr.append(
      cell("th", row.where), cell("td", row.model, "", "words"), cell("td", row.what, "", "words"),
      cell("td", row.printed), cell("td", row.ours, row.interval), cell("td", row.difference), verdict,
    );
    return tr;
  }

  function draw() {
    const chosen = Object.fromEntries(new FormData(form));
    const words = chosen.text.toLowerCase().split(/\s+/).filter(Boolean);
    delete chosen.text;
    const found = rows.filter(
      (row) => Object.entries(chosen).every(([key, value]) => !value || row[key] === value) && words.every((word) => row.all.includes(word)),
    );
    body.replaceChildren(...found.slice(0, limit).map(line));
    shown.textContent = found.length.toLocaleString("en") + " of " + rows.length.toLocaleString("en") + " cells";
    more.hidden = found.length <= limit;
  }

  form.addEventListener("input", () => { limit = page; draw(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => { limit += 5 * page; draw(); });
  addEventListener("beforeprint", () => { limit = Infinity; draw(); });
  form.hidden = false;
  draw();
})();
