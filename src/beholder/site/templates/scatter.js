// A scatter of any two numbers; the choice stands in the address.
(async function () {
  const { axes, facts } = await unpacked(document.getElementById("scatter-data"));
  const form = document.getElementById("axes");
  const titles = { parameters: "parameters", training_pairs: "training pairs", released: "release date", date: "date of the run" };
  for (const [name, extra] of [["x", titles], ["y", {}]]) {
    for (const [value, text] of [...Object.entries(extra), ...axes.map((axis) => [axis.name, axis.title])]) {
      const option = document.createElement("option");
      option.value = value;
      option.textContent = text;
      form.elements[name].append(option);
    }
  }
  const known = Object.fromEntries(axes.map((axis) => [axis.name, axis]));
  const chosen = new URLSearchParams(location.hash.slice(1));
  for (const [name, value] of chosen) if (form.elements[name]) form.elements[name].value = value;
  if (!chosen.has("y") && axes.length) form.elements.y.value = axes[0].name;

  function points(x, y) {
    const words = form.elements.model.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = known[y].rows.filter(([model]) => words.every((word) => model.toLowerCase().includes(word)));
    return wanted.flatMap(([model, value, low, high, date, source, reason]) => {
      const others = facts[x] ? [[model, facts[x][model]]] : x === "date" ? [[model, date || null]] : known[x].rows.filter((row) => row[0] === model);
      return others.filter((other) => other[1] !== undefined && other[1] !== null).map((other) => ({ model, value, low, high, x: other[1], source, apart: Boolean(reason), reason }));
    });
  }

  async function draw() {
    const { x, y } = Object.fromEntries(new FormData(form));
    if (!known[y]) return;
    const values = points(x, y);
    document.getElementById("matches").textContent = values.length + " dots";
    history.replaceState(null, "", "#" + new URLSearchParams([...new FormData(form)].filter(([, word]) => word)));
    if (!values.length) return void (document.getElementById("scatter").textContent = "No model has both numbers.");
    const scale = x === "parameters" || x === "training_pairs" ? { type: "log" } : { zero: false };
    const across = { field: "x", type: x === "released" || x === "date" ? "temporal" : "quantitative", title: titles[x] || known[x].title, scale, axis: x === "parameters" || x === "training_pairs" ? { format: "~s" } : {} };
    const tooltip = ["model", "value", "low", "high", "source", "reason"].map((field) => ({ field }));
    const spec = {
      width: "container",
      height: 420,
      background: null,
      data: { values },
      config: { axis: { labelColor: "currentColor", titleColor: "currentColor", gridOpacity: 0.15 }, view: { stroke: null } },
      layer: (values.some((each) => each.low !== null) ? (all) => all : (all) => all.slice(1))([
        { transform: [{ filter: "isValid(datum.low)" }], mark: { type: "rule", color: "currentColor", opacity: 0.5 }, encoding: { x: across, y: { field: "low", type: "quantitative", title: known[y].title, scale: { zero: false } }, y2: { field: "high" } } },
        { mark: { type: "point", size: 60, color: "#4c86c0" }, encoding: { x: across, y: { field: "value", type: "quantitative", scale: { zero: false } }, fillOpacity: { condition: { test: "datum.apart", value: 0 }, value: 1 }, fill: { value: "#4c86c0" }, tooltip } },
      ]),
    };
    await vegaEmbed("#scatter", spec, { renderer: "svg", ast: true, actions: false });
  }
  form.addEventListener("input", draw);
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", () => { for (const [name, value] of new URLSearchParams(location.hash.slice(1))) if (form.elements[name]) form.elements[name].value = value; draw(); });
  await draw();
})();
