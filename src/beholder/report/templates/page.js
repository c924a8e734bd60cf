// Tabs, charts drawn when they come into view, links to copy, files to save. Without scripts, everything is shown.
(function () {
  const options = {
    renderer: "svg",
    ast: true, // expressions are interpreted, so the policy need not allow eval
    actions: false,
    logLevel: 1, // errors only
    loader: { load: () => Promise.reject(new Error("this page loads nothing")) },
  };

  // One chart at a time, between the reader's own actions.
  const waiting = [];
  let busy = false;
  const later = window.requestIdleCallback || ((work) => setTimeout(work, 1));
  function next() {
    if (busy || !waiting.length) return;
    busy = true;
    later(async () => {
      const view = waiting.shift();
      const still = view.innerHTML;
      try {
        const spec = await unpacked(document.getElementById(view.dataset.spec));
        await vegaEmbed(view, spec, options);
        view.classList.add("drawn");
        tools(view, spec);
      } catch (error) {
        view.innerHTML = still;
        view.classList.add("failed");
        console.error(error);
      }
      busy = false;
      next();
    });
  }
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        observer.unobserve(target);
        waiting.push(target);
      }
      next();
    },
    { rootMargin: "400px" },
  );
  document.querySelectorAll(".view").forEach((view) => observer.observe(view));

  function button(text, label, action) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.setAttribute("aria-label", label);
    made.addEventListener("click", action);
    return made;
  }

  // The chart as a file: dark ink on white, its title inside.
  async function saved(view, spec, kind) {
    const paper = JSON.parse(JSON.stringify(spec).replaceAll("currentColor", "#222222"));
    Object.assign(paper, { title: view.dataset.title, background: "white", width: 560 });
    const { view: chart } = await vegaEmbed(document.createElement("div"), paper, options);
    const blob = kind === "svg" ? new Blob([await chart.toSVG()], { type: "image/svg+xml" }) : await new Promise(async (done) => (await chart.toCanvas(2)).toBlob(done));
    save(view.dataset.file + "." + kind, blob);
  }

  // A page of the chart alone, and the line for another page that shows it.
  async function embedded(view, spec) {
    const paper = JSON.parse(JSON.stringify(spec).replaceAll("currentColor", "#222222"));
    const { view: chart } = await vegaEmbed(document.createElement("div"), { ...paper, background: "white", width: 560 }, options);
    const title = view.dataset.title.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
    const name = view.dataset.file + ".html";
    const page = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title><style>body{margin:0;font:16px system-ui,sans-serif;color:#222;background:#fff}svg{max-width:100%;height:auto}</style><p><b>${title}</b></p>${await chart.toSVG()}</html>`;
    save(name, new Blob([page], { type: "text/html" }));
    if (navigator.clipboard) navigator.clipboard.writeText(`<iframe src="${encodeURIComponent(name)}" title="${title}" width="600" height="420" loading="lazy"></iframe>`).catch(() => {});
  }

  // Every table of rows that stands in the chart, wherever it stands.
  function tables(part) {
    if (!part || typeof part !== "object") return [];
    const own = Array.isArray(part.values) && typeof part.values[0] === "object" ? [part.values] : [];
    const named = part.datasets ? Object.values(part.datasets) : [];
    return [...own, ...named, ...Object.entries(part).filter(([key]) => key !== "values" && key !== "datasets").flatMap(([, each]) => tables(each))];
  }

  function tools(view, spec) {
    const bar = document.createElement("p");
    bar.className = "tools";
    const rows = tables(spec).sort((a, b) => b.length - a.length)[0] || [];
    const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
    bar.append(
      button("Copy link", "Copy link to this chart", () => copy(view.closest("figure").id)),
      button("SVG", "Save this chart as SVG", () => saved(view, spec, "svg")),
      button("PNG", "Save this chart as PNG", () => saved(view, spec, "png")),
      button("Embed", "Embed this chart: save a small page of it, and copy the line that shows it", () => embedded(view, spec)),
      button("CSV", "Save this chart's data as CSV", () => save(view.dataset.file + ".csv", new Blob([csv([names, ...rows.map((row) => names.map((name) => row[name]))])], { type: "text/csv" }))),
    );
    view.after(bar);
  }

  function copy(id) {
    const address = location.href.split("#")[0] + "#" + id;
    history.replaceState(null, "", "#" + id);
    if (navigator.clipboard) navigator.clipboard.writeText(address).catch(() => {});
  }
  document.querySelectorAll("a.link").forEach((link) => link.addEventListener("click", () => copy(link.hash.slice(1))));

  // Tabs over the panels of a topic.
  document.querySelectorAll(".tabs").forEach((tabs, place) => {
    const panels = [...tabs.querySelectorAll(":scope > .panel")];
    if (!panels.length) return;
    const list = document.createElement("div");
    list.className = "tablist";
    list.setAttribute("role", "tablist");
    const buttons = panels.map((panel, number) => {
      panel.id = panel.id || `panel-${place}-${number}`;
      const tab = button(panel.dataset.tab, panel.dataset.tab, () => choose(number));
      tab.removeAttribute("aria-label");
      tab.id = panel.id + "-tab";
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-controls", panel.id);
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", tab.id);
      return tab;
    });
    function choose(chosen) {
      panels.forEach((panel, number) => {
        panel.hidden = number !== chosen;
        buttons[number].setAttribute("aria-selected", String(number === chosen));
        buttons[number].tabIndex = number === chosen ? 0 : -1;
      });
    }
    list.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const chosen = (buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length;
      choose(chosen);
      buttons[chosen].focus();
      event.preventDefault();
    });
    list.append(...buttons);
    tabs.prepend(list);
    choose(0);
  });

  // A link into something closed opens it.
  function reveal() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)).split("?")[0]);
    for (let each = target; each; each = each.parentElement) if (each.tagName === "DETAILS") each.open = true;
    if (target) target.querySelectorAll(":scope > details").forEach((each) => (each.open = true));
    if (target) target.scrollIntoView();
  }
  addEventListener("hashchange", reveal);
  reveal();
})();
