// Rows of a table, filtered, sorted and searched; the filters stand in the address. Text is set as text, never as markup.
(function () {
  const source = document.getElementById("ledger-cells");
  if (!source) return;
  // Unpacked when the table comes near, or when someone asks for rows.
  let opened = null;
  const ready = () => (opened = opened || unpacked(source).then(table));
  new IntersectionObserver((entries, observer) => {
    if (entries.some((entry) => entry.isIntersecting)) { observer.disconnect(); ready(); }
  }, { rootMargin: "600px" }).observe(document.getElementById("filters").parentElement);
  document.querySelectorAll("a[data-metric]").forEach((link) => link.addEventListener("click", () => ready().then((rows) => rows.show(link.dataset))));
  document.querySelectorAll("button.csv").forEach((button) => button.addEventListener("click", () => ready().then((rows) => rows.saved(button.dataset))));
  if (location.hash.startsWith("#rows?")) ready();
  if (document.getElementById("ledger").dataset.print === "all") ready().then((rows) => addEventListener("beforeprint", rows.all));

  function table(data) {
    const form = document.getElementById("filters");
    const grid = document.getElementById("ledger");
    const body = grid.querySelector("tbody");
    const shown = document.getElementById("shown");
    const more = document.getElementById("more");
    const page = 20;
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

    grid.querySelectorAll("thead th").forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      button.title = "Sort by this column";
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        order = { column, down: order && order.column === column ? !order.down : data.columns[column].kind === "number" };
        grid.querySelectorAll("thead th").forEach((each) => each.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", order.down ? "descending" : "ascending");
        draw();
      });
    });

    function fields(wanted) {
      form.reset();
      for (const [name, word] of Object.entries(wanted)) if (form.elements[name]) form.elements[name].value = word;
      limit = page;
      draw();
    }
    function remember() {
      const chosen = [...new FormData(form)].filter(([, word]) => word);
      history.replaceState(null, "", "#rows" + (chosen.length ? "?" + new URLSearchParams(chosen) : ""));
    }
    const show = ({ metric, model, dataset }) => { fields(Object.fromEntries(Object.entries({ metric, model, dataset }).filter(([, word]) => word))); remember(); };
    function saved({ metric, dataset }) {
      const names = Object.keys(data.fields);
      const rows = every.filter((row) => value("metric", row) === metric && (!data.fields.dataset || value("dataset", row) === dataset));
      save(metric + ".csv", new Blob([csv([names, ...rows.map((row) => names.map((name) => value(name, row)))])], { type: "text/csv" }));
    }

    form.addEventListener("input", () => { limit = page; draw(); remember(); });
    form.addEventListener("submit", (event) => event.preventDefault());
    more.addEventListener("click", () => { limit += 5 * page; draw(); });
    form.hidden = false;
    if (location.hash.startsWith("#rows?")) fields(Object.fromEntries(new URLSearchParams(location.hash.slice(6))));
    else draw();
    return { show, saved, all: () => { limit = Infinity; draw(); } };
  }
})();
