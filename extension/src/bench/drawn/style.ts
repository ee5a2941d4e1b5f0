/** How maps of errors and lanes of warps look. */

const ERRORS = [
  '#f4f6f8,#20262d', '#d3e4f5,#1f3a56', '#9cc5ea,#2b5f92', '#5595d1,#4d94de', '#1f5f9f,#a8d1ff', '#b3140f,#ff6b60',
  '#8a1f66,#f5a9d6', '#5b2d8c,#c9a2ff', '#7a4a00,#f2b84b', '#cfd6de,#3a434e'
];
/** What warps do: its colour, and that of words on it. */
const LANES: readonly [string, string, string][] = [
  ['load', '#0064b5,#5fb0ff', '#ffffff,#0b1117'], ['wait', '#cfd6de,#3a434e', '#1c2128,#e4e9ef'],
  ['barrier', '#7a4a00,#f2b84b', '#ffffff,#0b1117'], ['compute', '#116329,#7ee787', '#ffffff,#0b1117'],
  ['store', '#8a1f66,#f5a9d6', '#ffffff,#0b1117'], ['block', '#e1e6ec,#2c343d', '#1c2128,#e4e9ef']
];

export const DRAWN_STYLE =
  ERRORS.map((pair, at) => `.tbx .tbx-err${at}{fill:light-dark(${pair})}b.tbx-err${at}{background:light-dark(${pair})}`).join('') +
  LANES.map(([kind, fill, word]) => `.tbx .tbx-lane-${kind}{fill:light-dark(${fill})}b.tbx-lane-${kind}{background:light-dark(${fill})}.tbx .tbx-on-${kind}{fill:light-dark(${word})}`).join('') +
  `
.tbx-errors,.tbx-lanes{margin:6px 0 10px}
.tbx-errors-bar,.tbx-lanes-bar{display:flex;flex-wrap:wrap;gap:4px;margin:0 0 5px}
.tbx-errors-bar .tbx-button,.tbx-lanes-bar .tbx-button{line-height:18px;font-size:12px}
.tbx-errors-plot{display:inline-block;max-width:100%;overflow:auto;border:1px solid var(--line);cursor:crosshair;line-height:0}
.tbx-err-lines{stroke:var(--dim);stroke-width:1;fill:none;shape-rendering:crispEdges}
.tbx-err-now{fill:none;stroke:var(--accent);stroke-width:2}
.tbx-err-letter{font:700 9px/1 system-ui,sans-serif;text-anchor:middle;dominant-baseline:central;fill:light-dark(#ffffff,#0b1117);pointer-events:none}
.tbx-errors figcaption,.tbx-lanes figcaption{display:flex;flex-wrap:wrap;gap:2px 12px;font-size:12px;margin-top:5px}
.tbx-errors b.tbx-swatch{font:700 9px/11px system-ui,sans-serif;text-align:center;color:light-dark(#ffffff,#0b1117)}
.tbx-errors-said,.tbx-lanes-said{margin:4px 0;min-height:1.45em;font-size:12.5px;font-variant-numeric:tabular-nums}
.tbx-lanes-plot{border:1px solid var(--line);overflow:hidden;touch-action:pan-y;cursor:grab;line-height:0}
.tbx-lanes text{fill:var(--dim);font:11px var(--jp-ui-font-family,system-ui,sans-serif)}
.tbx-lanes .tbx-mid{text-anchor:middle}.tbx-lanes .tbx-end{text-anchor:end}
.tbx-lanes .tbx-lane-word{font-size:10.5px;pointer-events:none}
.tbx-lane-now{fill:none;stroke:var(--accent);stroke-width:2}
`;
