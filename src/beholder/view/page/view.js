// The viewer: a virtual list of pictures by score. Only what is in sight is in the page; text is set as text.
(async function () {
  const form = document.getElementById("choice");
  const list = document.getElementById("list");
  const space = document.getElementById("space");
  const colours = ["#c9741f", "#2a9d8f", "#4c86c0", "#b45a9c", "#9a8b1f", "#c8553d", "#7a7fd1", "#6b8e4e"];
  const known = { woman: "#c9741f", Female: "#c9741f", man: "#2a9d8f", Male: "#2a9d8f" }; // as in the report
  const cell = { width: 150, height: 230 };
  const page = 100;
  const [sets, opens] = await Promise.all(["api/sets", "api/opening" + location.search].map(async (path) => (await fetch(path)).json()));
  let total = 0;
  let pages = new Map();
  let version = 0;

  const option = (value, text) => Object.assign(document.createElement("option"), { value, textContent: text });
  const chosen = () => Object.fromEntries(new FormData(form));
  const set = () => sets[Number(form.elements.set.value)];
  const name = (each) => `${each.model}, ${each.study}: ${each.set} on ${each.dataset} (${each.images.toLocaleString("en")} pictures)`;

  sets.forEach((each, place) => form.elements.set.append(option(place, name(each))));

  function fill() {
    const { prompts, attributes } = set();
    form.elements.prompt.replaceChildren(...prompts.map((text, place) => option(place, text)));
    form.elements.by.replaceChildren(...Object.keys(attributes).map((each) => option(each, each)));
    const same = sets.map((each, place) => [each, place]).filter(([each]) => each !== set() && each.dataset === set().dataset && each.prompts.some((text) => prompts.includes(text)));
    form.elements.with.replaceChildren(option("", "none"), ...same.map(([each, place]) => option(place, name(each))));
    const filters = Object.entries(attributes).map(([attribute, groups]) => {
      const label = document.createElement("label");
      const select = document.createElement("select");
      select.name = "where." + attribute;
      select.append(option("", "all"), ...groups.map((group) => option(group, group)));
      label.append(attribute, select);
      return label;
    });
    document.getElementById("filters").replaceChildren(...filters);
  }
  function where() {
    const entries = Object.entries(chosen()).filter(([key, value]) => key.startsWith("where.") && value);
    return Object.fromEntries(entries.map(([key, value]) => [key.slice(6), value]));
  }
  function question(more) {
    const { set: number, prompt, order, by, with: other } = chosen();
    const filter = where();
    if (order === "surprising" && by && !filter[by]) filter[by] = set().attributes[by][0];
    const asked = { set: number, prompt, order, where: JSON.stringify(filter), ...more };
    if (order === "surprising" && by) asked.surprising = by;
    if (order === "typical" && by) asked.typical = by;
    if (other) asked.with = other;
    return new URLSearchParams(asked);
  }

  function figure(row, place, across) {
    const made = document.createElement("figure");
    made.style.left = (place % across) * cell.width + "px";
    made.style.top = Math.floor(place / across) * cell.height + "px";
    const image = document.createElement("img");
    image.alt = "picture " + (place + 1);
    image.addEventListener("error", async () => {
      const lost = Object.assign(document.createElement("div"), { className: "lost" });
      lost.textContent = await (await fetch(image.src)).text();
      image.replaceWith(lost);
    });
    image.src = `picture/${form.elements.set.value}/${row.place}?side=280`;
    const caption = document.createElement("figcaption");
    const said = Object.assign(document.createElement("b"), { textContent: row.said });
    caption.append(`${place + 1}. `, said, ` ${row.about}`);
    made.append(image, caption);
    return made;
  }

  async function draw() {
    const mine = version;
    const across = Math.max(1, Math.floor(list.clientWidth / cell.width));
    space.style.height = Math.ceil(total / across) * cell.height + "px";
    const first = Math.max(0, Math.floor(list.scrollTop / cell.height) - 1) * across;
    const last = Math.min(total, (Math.ceil((list.scrollTop + list.clientHeight) / cell.height) + 1) * across);
    const needed = [];
    for (let number = Math.floor(first / page); number * page < last; number++) needed.push(number);
    await Promise.all(needed.map(fetched));
    if (mine !== version) return;
    const here = new Map([...space.children].map((each) => [Number(each.dataset.at), each]));
    const wanted = [];
    for (let at = first; at < last; at++) {
      const row = (await pages.get(Math.floor(at / page)))[at % page];
      if (!row) continue;
      const made = here.get(at) || figure(row, at, across);
      made.dataset.at = at;
      wanted.push(made);
    }
    space.replaceChildren(...wanted);
  }
  function fetched(number) {
    if (!pages.has(number)) pages.set(number, fetch("api/rank?" + question({ offset: number * page, limit: page })).then((answer) => answer.json()).then((answer) => { total = answer.total; return answer.rows; }));
    return pages.get(number);
  }

  async function distributions() {
    const { set: number, prompt, by } = chosen();
    const box = document.getElementById("spread");
    if (!by) return box.replaceChildren();
    const { edges, groups, people, means, ends, verdicts } = await (await fetch("api/distributions?" + new URLSearchParams({ set: number, prompt, by }))).json();
    const space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg");
    svg.setAttribute("viewBox", "0 0 300 60");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", "Numbers of each group, from " + ends.join(" to "));
    const keys = document.createElement("p");
    Object.entries(groups).forEach(([group, counts], place) => {
      const sum = counts.reduce((a, b) => a + b, 0) || 1;
      const top = Math.max(...Object.values(groups).map((each) => Math.max(...each) / (each.reduce((a, b) => a + b, 0) || 1)));
      const steps = counts.map((count, bin) => `${bin * 10},${60 - (count / sum / top) * 56} ${(bin + 1) * 10},${60 - (count / sum / top) * 56}`);
      const path = document.createElementNS(space, "path");
      path.setAttribute("d", `M0,60 L${steps.join(" ")} L300,60`);
      const colour = known[group] || colours[place % colours.length];
      path.setAttribute("fill", colour);
      path.setAttribute("stroke", colour);
      path.setAttribute("vector-effect", "non-scaling-stroke");
      if (place) path.setAttribute("stroke-dasharray", place * 3 + " 3");
      svg.append(path);
      const key = Object.assign(document.createElement("span"), { className: "key" });
      const line = document.createElement("i");
      line.style.borderTopColor = colour;
      if (place) line.style.borderTopStyle = "dashed";
      key.append(line, `${group}: ${means[group] ? means[group] + " on average" : "no score"} (${people[group]} people, ${counts.reduce((a, b) => a + b, 0)} pictures)`);
      keys.append(key);
    });
    let waiting = null;
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const value = edges[0] + ((event.clientX - box.left) / box.width) * (edges.at(-1) - edges[0]);
      clearTimeout(waiting);
      waiting = setTimeout(() => under(value), 60);
    });
    const said = document.createElement("ul");
    verdicts.forEach((each) => said.append(Object.assign(document.createElement("li"), { textContent: each.said })));
    const axis = Object.assign(document.createElement("p"), { className: "axis" });
    axis.append(...ends.map((text) => Object.assign(document.createElement("span"), { textContent: text })));
    const more = document.createElement("details");
    more.append(Object.assign(document.createElement("summary"), { textContent: `What the run says of these groups (${verdicts.length})` }), said);
    box.replaceChildren(keys, svg, axis, ...(verdicts.length ? [more] : []));
  }
  async function under(value) {
    const { set: number, prompt } = chosen();
    const [row] = await (await fetch("api/nearest?" + new URLSearchParams({ set: number, prompt, value, where: JSON.stringify(where()) }))).json();
    if (!row) return;
    const image = document.createElement("img");
    image.alt = "the picture whose score is nearest";
    image.src = `picture/${number}/${row.place}?side=160`;
    document.getElementById("under").replaceChildren(image, `${row.said}: ${row.about}`);
  }

  async function start() {
    version += 1;
    const report = document.getElementById("report");
    report.hidden = set().report === null;
    report.href = `run/${set().report}/report.html`;
    pages = new Map();
    list.scrollTop = 0;
    await fetched(0);
    document.getElementById("count").textContent = `${total.toLocaleString("en")} pictures. Numbers: ${set().unit}.`;
    space.replaceChildren();
    await Promise.all([draw(), distributions()]);
  }
  form.addEventListener("input", (event) => { if (event.target.name === "set") fill(); start(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  list.addEventListener("scroll", () => requestAnimationFrame(draw));
  addEventListener("resize", () => { space.replaceChildren(); draw(); });
  if (opens) {
    document.getElementById("choose").open = false;
    form.elements.set.value = opens.set;
    document.querySelector("h1").textContent = opens.answer;
    document.getElementById("badge").textContent = opens.badge;
  }
  fill();
  if (opens) for (const name of ["prompt", "by"]) if (opens[name] !== "") form.elements[name].value = opens[name];
  if (opens && opens.by) form.elements.order.value = "typical";
  await start();
})();
