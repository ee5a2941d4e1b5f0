// The live view of one workbench: parts of HTML that the kernel makes, put in their places.
// State of the reader (what is folded, how far a pane is scrolled, how wide it was drawn) survives
// each change, because the panes are made anew when a slider moves. No state lives in this module:
// a page may hold several views of several workbenches.

const PARTS = ["status", "problem", "stages", "check", "chart", "details", "history"];

// What a reader did to the elements of a part, by the names that the next version has again.
function remember(place) {
  const kept = { scroll: [], open: new Map(), size: new Map(), focus: null };
  for (const pane of place.querySelectorAll("details[id]")) {
    kept.open.set(pane.id, pane.open);
    if (pane.style.width) kept.size.set(pane.id, pane.style.width);
    const code = pane.querySelector(".code");
    if (code) kept.scroll.push([pane.id, code.scrollTop, code.scrollLeft]);
    if (code && code === document.activeElement) kept.focus = pane.id;
  }
  const row = place.querySelector(".panes");
  kept.row = row && [row.scrollLeft, row.style.height];
  kept.plain = [...place.querySelectorAll("details:not([id])")].map((each) => each.open);
  return kept;
}

function restore(place, kept) {
  const pane = (id) => place.querySelector(`[id="${id}"]`);
  for (const [id, open] of kept.open) if (pane(id)) pane(id).open = open;
  for (const [id, width] of kept.size) if (pane(id)) pane(id).style.width = width;
  for (const [id, top, left] of kept.scroll) {
    const code = pane(id)?.querySelector(".code");
    if (code) [code.scrollTop, code.scrollLeft] = [top, left];
  }
  const row = place.querySelector(".panes");
  if (row && kept.row) {
    if (kept.row[1]) row.style.height = kept.row[1];
    row.scrollLeft = kept.row[0];
  }
  place.querySelectorAll("details:not([id])").forEach((part, k) => {
    if (kept.plain[k] !== undefined) part.open = kept.plain[k];
  });
  if (kept.focus) pane(kept.focus)?.querySelector(".code")?.focus({ preventScroll: true });
}

function render({ model, el }) {
  const sheet = document.createElement("style");
  // The static form of the same picture stands in the next output, for a notebook that is opened
  // again without a kernel. It is hidden as long as this view is there.
  const name = model.get("name");
  sheet.textContent =
    model.get("sheet") +
    `[data-tilebench-fallback="${name}"]{display:none}` +
    `.jp-OutputArea-child:has(>.jp-OutputArea-output [data-tilebench-fallback="${name}"]){display:none}`;
  const root = document.createElement("div");
  root.className = "tilebench";
  root.setAttribute("role", "region");
  root.setAttribute("aria-label", `workbench of ${model.get("kernel")}`);
  const gone = document.createElement("div");
  gone.className = "gone";
  gone.textContent = "The kernel that made this is gone. To have working controls, run this cell again.";
  root.append(gone);
  const undo = [];
  for (const part of PARTS) {
    const place = document.createElement("div");
    place.className = `part part-${part}`;
    const draw = () => {
      const kept = remember(place);
      place.innerHTML = model.get(part);
      place.drawn = Date.now();
      restore(place, kept);
    };
    draw();
    model.on(`change:${part}`, draw);
    undo.push(() => model.off(`change:${part}`, draw));
    root.append(place);
  }
  // The kernel says how long it has been at it when it says something; in between the view counts.
  const clock = setInterval(() => {
    if (root.closest(".jupyter-widgets-disconnected")) return;
    for (const span of root.querySelectorAll("[data-elapsed]")) {
      const since = (Date.now() - span.closest(".part").drawn) / 1000;
      span.textContent = `${(Number(span.dataset.elapsed) + since).toFixed(1)} s`;
    }
  }, 200);
  undo.push(() => clearInterval(clock));
  el.append(sheet, root);
  return () => undo.forEach((each) => each());
}

export default { render };
