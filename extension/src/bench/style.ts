/** The style sheet of a bench, scoped under one class. Colours are those of `workbench/palette.json`. */

import { DRAWN_STYLE } from './drawn/style';
import palette from '../palette.json';
import { EDIT_STYLE } from './edit/style';

const pairs = Object.entries(palette).map(([name, [light, dark]]) => `--${name}:light-dark(${light},${dark})`);

// Which page says what about its theme: JupyterLab and Notebook 7, VS Code, Colab.
const THEMES =
  ['[data-jp-theme-light=true]', '.vscode-light', 'html[theme=light]'].map(page => `${page} .tbx`).join() + '{color-scheme:light}' +
  ['[data-jp-theme-light=false]', '.vscode-dark', '.vscode-high-contrast', 'html[theme=dark]'].map(page => `${page} .tbx`).join() + '{color-scheme:dark}';

const TOKENS: readonly [string, string][] = [
  ['keyword', 'tk'], ['comment', 'dim'], ['directive', 'td'], ['builtin', 'tb'], ['type', 'ty'], ['number', 'tn'],
  ['string', 'ts'], ['register', 'tv'], ['operator', 'dim']
];

export const STYLE =
  `.tbx{color-scheme:light dark;${pairs.join(';')}}${THEMES}` +
  TOKENS.map(([kind, colour]) => `.tbx .tb-t-${kind}{color:var(--${colour})}`).join('') +
  `
.tbx{position:relative;contain:layout paint style;display:flex;flex-direction:column;height:min(80vh,900px);min-height:360px;color:var(--fg);background:var(--bg);
font:13px/1.45 var(--jp-ui-font-family,system-ui,sans-serif);border:1px solid var(--line);border-radius:6px;overflow:hidden;margin:4px 0;text-align:left}
.tbx *,.tbx *::before{box-sizing:border-box}
.jp-LinkedOutputView{container-type:size}.jp-LinkedOutputView .tbx{min-height:260px;height:max(260px,calc(100cqh - 20px))}
.tbx [hidden]{display:none!important}
.tbx :focus-visible{outline:2px solid var(--accent);outline-offset:-2px}
.tbx-quiet{color:var(--dim)}
.tbx-header,.tbx-stages,.tbx-controls{flex:0 0 auto;background:var(--bar);border-bottom:1px solid var(--line)}
.tbx-header{display:flex;flex-wrap:wrap;align-items:center;gap:4px 7px;padding:5px 8px}
.tbx-name{font-size:14px}
.tbx-buttons{margin-left:auto;display:flex;gap:4px}
.tbx-chips,.tbx-status{display:inline-flex;flex-wrap:wrap;gap:4px 6px;align-items:center}
.tbx-chip{border:1px solid var(--line);border-radius:10px;padding:0 8px;font-size:12px;line-height:18px;white-space:nowrap;font-variant-numeric:tabular-nums;background:var(--bg)}
.tbx-chip.tbx-tone-on{border-color:var(--accent);color:var(--accent)}.tbx-chip.tbx-tone-good{border-color:var(--good);color:var(--good)}
.tbx-chip.tbx-tone-bad{border-color:var(--bad);color:var(--bad)}.tbx-chip.tbx-tone-warn{border-color:var(--warn);color:var(--warn)}
.tbx-tone-good{color:var(--good)}.tbx-tone-bad{color:var(--bad)}.tbx-tone-warn{color:var(--warn)}.tbx-tone-quiet{color:var(--dim)}.tbx-tone-on{color:var(--accent)}
.tbx-status{min-width:84px}.tbx-clock:empty{display:none}.tbx-clock{min-width:5ch;font-variant-numeric:tabular-nums;color:var(--dim);font-size:12px}
.tbx-progress{width:54px;height:6px;border-radius:3px;background:linear-gradient(to right,var(--fill) calc(var(--part)*100%),var(--track) 0)}
.tbx-spark{display:block}.tbx-spark polyline{fill:none;stroke:var(--s1);stroke-width:1.5}.tbx-spark circle{fill:var(--s2)}
.tbx button,.tbx select,.tbx input{font:inherit;color:var(--fg);background:var(--bg);border:1px solid var(--line);border-radius:4px;margin:0}
.tbx-button{padding:1px 7px;line-height:20px;cursor:pointer}
.tbx-button[aria-pressed=true]{background:var(--link);border-color:var(--accent);color:var(--fg)}
.tbx button:hover{border-color:var(--accent)}
.tbx select{padding:1px 4px;line-height:20px;max-width:190px}
.tbx-controls{display:flex;flex-wrap:wrap;align-items:center;gap:2px 14px;padding:3px 10px 4px;max-height:30%;overflow:auto}.tbx-more[open]{flex-basis:100%}.tbx-controls>.tbx-knobs{display:contents}
.tbx-knobs{display:flex;flex-wrap:wrap;gap:2px 14px}
.tbx-knob{display:flex;align-items:center;gap:7px;min-height:26px}
.tbx-knob label{font-family:var(--jp-code-font-family,ui-monospace,monospace);font-size:12px}
.tbx-knob input[type=range]{width:92px;accent-color:var(--accent);border:0;background:none;height:20px;padding:0}
.tbx-knob input[type=text]{width:110px;padding:1px 5px}
.tbx-knob output{min-width:3ch;font-variant-numeric:tabular-nums;font-weight:600}
.tbx-more>summary{cursor:pointer;color:var(--dim);font-size:12px;line-height:26px}
.tbx-notes{flex:0 0 auto;max-height:38%;overflow:auto}.tbx-notes:empty{display:none}
.tbx-notes p{margin:0;padding:3px 10px;border-bottom:1px solid var(--line)}
.tbx-problem{padding:5px 10px;border-bottom:1px solid var(--line);border-left:4px solid var(--bad)}
.tbx-problem pre,.tbx-quote{margin:2px 0 0;font:12px/1.45 var(--jp-code-font-family,ui-monospace,monospace);white-space:pre-wrap;background:none;color:inherit;border:0;padding:0}
.tbx-stages{display:flex;flex-wrap:wrap;align-items:center;gap:3px;padding:3px 8px;font-size:12px}
.tbx-stages .tbx-button{padding:0 6px;line-height:18px;border-radius:9px}
.tbx-stages select{line-height:18px;padding:0 2px;max-width:130px;margin-left:4px;field-sizing:content}.tbx-places{display:flex;gap:3px}
.tbx-gap{margin-left:8px}.tbx-said{margin-left:8px}
.tbx-body{flex:1 1 0;min-height:0;display:flex;overflow:hidden}
.tbx-panes{flex:1 1 0;min-width:0;display:flex;overflow-x:auto;overflow-y:hidden}
.tbx-stale .tbx-body{border-left:6px double var(--warn)}
.tbx-pane{position:relative;flex:1 1 0;min-width:240px;display:flex;flex-direction:column}
.tbx-head{flex:0 0 26px;display:flex;align-items:center;gap:4px;padding:0 4px 0 8px;background:var(--bar);border-bottom:1px solid var(--line);white-space:nowrap;overflow:hidden;font-size:12px}
.tbx-head strong{font-size:12.5px}.tbx-facts{flex:0 9999 auto;min-width:0;overflow:hidden;text-overflow:ellipsis}
.tbx-delta{flex:none;font-variant-numeric:tabular-nums;min-width:0;overflow:hidden;text-overflow:ellipsis}
.tbx-search{width:96px;padding:0 4px!important;line-height:18px;flex:0 1 96px;min-width:40px}
.tbx-icon{padding:0 4px;line-height:18px;border-color:transparent!important;background:none!important;cursor:pointer;color:var(--dim)!important}
.tbx-icon[aria-pressed=true]{color:var(--fg)!important;background:var(--link)!important}
.tbx-icon:hover{border-color:var(--line)!important;color:var(--fg)!important}
.tbx-divider{flex:0 0 5px;cursor:col-resize;background:var(--line);touch-action:none}
.tbx-divider:hover,.tbx-divider:focus-visible{background:var(--accent)}
.tbx-panes[data-alone=true] .tbx-divider{display:none}
.tbx-code{flex:1 1 0;min-height:0;overflow:auto;position:relative;background:var(--bg);contain:strict;padding:0}
.tbx-sheet{position:relative;min-width:100%}
.tbx-row,.tbx-probe{font:12px/18px var(--jp-code-font-family,ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace);white-space:pre}
.tbx-row{tab-size:1;position:absolute;left:0;right:0;height:18px;overflow:hidden;border-left:3px solid transparent;cursor:default}
.tbx-probe{position:absolute;visibility:hidden}
.tbx-number{color:var(--dim);font-style:normal;user-select:none;-webkit-user-select:none;padding:0 6px 0 3px}
.tbx-gutter{color:var(--dim);font-style:normal;user-select:none;-webkit-user-select:none;background:linear-gradient(to right,var(--track) calc(var(--weight,0)*100%),transparent 0)}
.tbx-said-of{cursor:help}
.tbx-tip{position:absolute;z-index:3;max-width:min(60ch,92%);padding:3px 8px;border:1px solid var(--line);border-radius:4px;background:var(--bar);color:var(--fg);font-size:12px;white-space:pre-line;pointer-events:none;box-shadow:0 2px 8px rgb(0 0 0/.25)}
.tbx-totals{color:var(--dim);font-variant-numeric:tabular-nums;min-width:0;overflow:hidden;text-overflow:ellipsis}.tbx-totals:empty{display:none}.tbx-totals span+span{margin-left:6px}
.tbx-icons{display:flex;flex:none;margin-left:auto}
.tbx-same{color:var(--dim)}.tbx-sized{border-color:var(--dim)}
.tbx mark.tbx-size{background:none;text-decoration:underline dotted}.tbx-changed{background:var(--changed);border-color:var(--s2)}.tbx-new{background:var(--new);border-color:var(--s3)}
.tbx-cut{border-top:2px dotted var(--bad)}
.tbx-lit{background:var(--link)}
.tbx-code:focus .tbx-now>.tbx-number{color:var(--fg);font-weight:700}
.tbx-code:focus .tbx-row.tbx-now{box-shadow:inset 0 0 0 1px var(--accent)}
.tbx-folded{color:var(--dim);font-style:italic;cursor:pointer;text-overflow:ellipsis}
.tbx mark{background:var(--mark);color:inherit;border-radius:2px;padding:0}.tbx mark.tbx-hit{box-shadow:0 0 0 1px var(--s2)}
.tbx-marks{position:absolute;right:0;top:26px;bottom:0;width:7px;pointer-events:none}
.tbx-marks b{position:absolute;right:0;width:6px;height:3px;background:var(--accent)}.tbx-marks .tbx-mark-hit{background:var(--s2)}
.tbx-pending{padding:8px 12px;font-style:italic;margin:0}
.tbx-side{flex:0 0 30%;min-width:220px;max-width:75%;display:flex;flex-direction:column;overflow:hidden}
.tbx-tabs{flex:0 0 auto;display:flex;flex-wrap:wrap;background:var(--bar);border-bottom:1px solid var(--line)}
.tbx-tabs button{border:0;border-radius:0;background:none;padding:2px 6px;line-height:20px;font-size:12px;cursor:pointer;color:var(--dim)}
.tbx-tabs button[aria-selected=true]{color:var(--fg);box-shadow:inset 0 -2px var(--accent);background:var(--bg)}
.tbx-badge{margin-left:4px;font-size:11px;border:1px solid currentColor;border-radius:8px;padding:0 4px}
.tbx-tab{flex:1 1 0;min-height:0;overflow:auto;padding:8px 12px;contain:content;container-type:inline-size}
.tbx-say{margin:4px 0;max-width:76ch}
.tbx-wide{overflow-x:auto;margin:4px 0 10px}
.tbx-table{border-collapse:collapse;font-size:12.5px;margin:0}
.tbx-table caption{text-align:left;color:var(--dim);padding:0 0 3px}
.tbx-table th,.tbx-table td{text-align:left;vertical-align:top;padding:2px 12px 2px 0;border:0;border-bottom:1px solid var(--line);background:none;max-width:60ch}
.tbx-table th{color:var(--dim);font-weight:600;white-space:nowrap}
.tbx .tbx-num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.tbx-mono{font-family:var(--jp-code-font-family,ui-monospace,monospace);font-size:12px}
.tbx-table tr.tbx-now td{background:var(--link)}
.tbx-bars{display:grid;grid-template-columns:fit-content(45%) minmax(24px,1fr) auto;gap:4px 10px;align-items:center;margin:6px 0 10px}
.tbx-track{height:10px;background:var(--track);border-radius:3px;overflow:hidden}
.tbx-track span{display:block;height:100%;background:var(--fill);min-width:1px}.tbx-track .tbx-over{background:var(--bad)}
.tbx-swatch{display:inline-block;width:11px;height:11px;margin-right:4px;vertical-align:-1px}
.tbx-plot{display:block;width:100%;max-width:760px;height:auto}
.tbx-plot text{fill:var(--fg);font:11px var(--jp-ui-font-family,system-ui,sans-serif)}.tbx-plot .tbx-axis{fill:var(--dim)}
@container (max-width:460px){.tbx-plot .tbx-axis{font-size:14px}}@container (max-width:340px){.tbx-plot .tbx-axis{font-size:16px}}
.tbx-plot .tbx-mid{text-anchor:middle}.tbx-plot .tbx-end{text-anchor:end}
.tbx-roof{stroke:var(--s3);stroke-width:2;fill:none}.tbx-path{stroke:var(--dim);stroke-width:1;fill:none;stroke-dasharray:2 3}
.tbx-grid{stroke:var(--line);stroke-width:1}.tbx-ceiling{stroke:var(--bad);stroke-dasharray:5 4;stroke-width:1.3}
.tbx-point{cursor:pointer}.tbx-point circle{fill:var(--s1);stroke:var(--bg);stroke-width:1}
.tbx-point.tbx-here circle{fill:var(--s2)}.tbx-point.tbx-leader circle{stroke:var(--good);stroke-width:2.5}
.tbx-point.tbx-flagged circle{fill:var(--bg);stroke:var(--bad);stroke-width:2}
.tbx-series{fill:none;stroke:var(--line);stroke-width:1.2}.tbx-series-now{stroke:var(--s1);stroke-width:1.6}
.tbx-other{stroke:var(--s3);stroke-width:1.6}.tbx-other-band{fill:var(--track)}.tbx-plot .tbx-other-name{fill:var(--s3)}
.tbx-cell rect{stroke:var(--bg);stroke-width:1}.tbx-cell{cursor:pointer}.tbx-cell.tbx-here rect{stroke:var(--s2);stroke-width:3}
.tbx-cell:focus-visible rect,.tbx-strand:focus-visible polyline:last-child{stroke:var(--accent);stroke-width:3}
.tbx-cell-none{fill:var(--bg);stroke:var(--line);stroke-dasharray:3 3}.tbx-cell-failed{stroke:var(--bad)}.tbx-cell-illegal{stroke:var(--warn)}
${[['#1f5f9f,#a8d1ff', '#ffffff,#10202f'], ['#5595d1,#4d94de', '#000000,#000000'], ['#9cc5ea,#2b5f92', '#10202f,#ffffff'], ['#d3e4f5,#1f3a56', '#10202f,#ffffff'], ['#f4f6f8,#20262d', '#1c2128,#e4e9ef']]
  .map(([fill, text], at) => `.tbx-step${at}{fill:light-dark(${fill})}b.tbx-step${at}{background:light-dark(${fill});border:1px solid var(--line)}.tbx-plot .tbx-step${at} text{fill:light-dark(${text})}`)
  .join('')}
.tbx-step5{fill:var(--bg)}b.tbx-step5{border:1px dashed var(--dim)}.tbx-step5 rect{stroke:var(--dim);stroke-dasharray:4 3}
.tbx-strand{fill:none;cursor:pointer}.tbx-strand polyline{fill:none;stroke-width:1.5}.tbx-strand .tbx-strand-wide{stroke:transparent;stroke-width:9}
.tbx-strand.tbx-step0 polyline:last-child{stroke:var(--s1);stroke-width:2.4}.tbx-strand.tbx-step1 polyline:last-child{stroke:var(--fill)}
.tbx-strand.tbx-step2 polyline:last-child{stroke:light-dark(#9cc5ea,#2b5f92)}
.tbx-strand.tbx-step3 polyline:last-child,.tbx-strand.tbx-step4 polyline:last-child{stroke:var(--line)}
.tbx-halo{paint-order:stroke;stroke:var(--bg);stroke-width:3px}
.tbx-strand.tbx-step5 polyline:last-child{stroke:var(--dim);stroke-dasharray:4 3}.tbx-strand.tbx-here polyline:last-child{stroke:var(--s2);stroke-width:3}
.tbx-legend{display:flex;flex-wrap:wrap;gap:2px 12px;font-size:12px;margin:2px 0}
.tbx-sweep-said{display:inline-flex;align-items:center;gap:6px}
.tbx-failed .tbx-cross{stroke:var(--bad)}.tbx-illegal .tbx-cross{stroke:var(--warn)}
.tbx-whisker{stroke:var(--s1);stroke-width:1.5}.tbx-cross{stroke:var(--bad);stroke-width:2;fill:none}
.tbx-point:focus-visible circle{stroke:var(--accent);stroke-width:3}
.tbx-chart-bar{display:flex;flex-wrap:wrap;gap:4px 8px;align-items:center;margin:0 0 4px}
.tbx-method{margin:4px 0;font-size:12px}.tbx-method summary{cursor:pointer;color:var(--dim)}.tbx-method p{margin:2px 0;color:var(--dim);max-width:90ch}
.tbx-choice{display:flex;gap:6px;align-items:center;margin:4px 0 6px}.tbx .tbx-choose{flex:0 1 auto;width:auto;min-width:0;max-width:none}
.tbx-pressed{display:inline-flex;gap:3px;align-items:center;margin:0 0 4px}
.tbx-picture{margin:4px 0 10px}.tbx-picture h4{margin:2px 0;font-size:12.5px}
.tbx-sides{display:flex;flex-wrap:wrap;gap:10px}.tbx-side-by-side{flex:1 1 260px;min-width:0}
.tbx-cells{position:relative}.tbx-cells-zoom{display:flex;gap:3px;margin-bottom:3px}
.tbx-cells-frame{position:relative}.tbx-cells-canvas{position:absolute;left:0;top:0;pointer-events:none}
.tbx-cells-view{overflow:auto;position:relative;max-width:100%}
.tbx-cells-said{margin:3px 0;min-height:1.45em;font-variant-numeric:tabular-nums}
.tbx-twin{margin:2px 0 6px}.tbx-twin summary{cursor:pointer;color:var(--dim)}
.tbx-span{stroke:var(--fg);stroke-width:1}.tbx-part{stroke:var(--dim);stroke-dasharray:3 3}
.tbx-span-of:focus{outline:none}.tbx-span-of:focus-visible .tbx-span{stroke:var(--accent);stroke-width:3}
.tbx-grip{flex:0 0 6px;cursor:ns-resize;background:var(--bar);border-top:1px solid var(--line);touch-action:none}
.tbx-gone{display:none;margin:0;padding:5px 10px;background:var(--changed);color:var(--warn)}
.jupyter-widgets-disconnected .tbx-gone{display:block}
.jp-RenderedHTMLCommon .tbx tbody tr{background:none}
@media (forced-colors:active){.tbx [aria-pressed=true],.tbx [role=tab][aria-selected=true]{forced-color-adjust:none;background:Highlight;color:HighlightText}
.tbx-row.tbx-lit{text-decoration:underline;border-left-color:Highlight}.tbx-divider{background:CanvasText}
.tbx-track span{forced-color-adjust:none;background:Highlight}.tbx-track .tbx-over{background:Mark}.tbx-heat svg,.tbx-swatch{forced-color-adjust:none}}
@media (max-width:900px){.tbx-side{flex-basis:42%}}
${EDIT_STYLE}${DRAWN_STYLE}`;
