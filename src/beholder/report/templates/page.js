// Draw each chart where its static picture stands; without scripts the picture stays.
(function () {
  const options = {
    renderer: "svg",
    ast: true, // expressions are interpreted, so the policy need not allow eval
    actions: { export: true, source: false, compiled: false, editor: false },
    loader: { load: () => Promise.reject(new Error("this page loads nothing")) },
  };
  document.querySelectorAll(".view").forEach((view) => {
    const spec = JSON.parse(document.getElementById(view.dataset.spec).textContent);
    const still = view.innerHTML;
    vegaEmbed(view, spec, options)
      .then(() => view.classList.add("drawn"))
      .catch((error) => {
        view.innerHTML = still;
        console.error(error);
      });
  });
  // On paper nothing can be opened, so everything is.
  addEventListener("beforeprint", () => document.querySelectorAll("main section > details").forEach((d) => (d.open = true)));
})();
