/** How an editor looks. The text field lies over the coloured lines, letter on letter. */

const LETTERS = '12px/18px var(--jp-code-font-family,ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace)';

export const EDIT_STYLE = `
.tbx-editor{flex:1 1 0;min-height:0;display:flex;flex-direction:column;background:var(--bg)}
.tbx-edit-bar{flex:0 0 auto;display:flex;flex-wrap:wrap;align-items:center;gap:4px 6px;padding:3px 8px;border-bottom:1px solid var(--line);font-size:12px}
.tbx-edit-bar .tbx-button{line-height:18px}
.tbx-edit-scroll{flex:1 1 0;min-height:0;overflow:auto;position:relative;display:flex;align-items:flex-start;contain:strict}
.tbx-edit-numbers{flex:0 0 auto;position:sticky;left:0;z-index:1;font:${LETTERS};white-space:pre;text-align:right;padding:0 8px 0 6px;color:var(--dim);
background:var(--bar);border-right:1px solid var(--line);user-select:none;-webkit-user-select:none;min-height:100%}
.tbx-edit-stack{position:relative;flex:1 0 auto;min-height:100%;margin-left:6px;font:${LETTERS}}
.tbx .tbx-edit-area{position:absolute;inset:0;width:100%;height:100%;margin:0;padding:0;border:0;border-radius:0;outline:0;resize:none;overflow:hidden;
background:none;color:transparent;caret-color:var(--fg);font:inherit;white-space:pre;tab-size:4;letter-spacing:normal;box-shadow:none}
.tbx .tbx-edit-area::selection{color:transparent;background:color-mix(in srgb,var(--accent) 32%,transparent)}
.tbx-edit-scroll:focus-within{box-shadow:inset 0 0 0 2px var(--accent)}
.tbx-edit-back{position:absolute;inset:0;pointer-events:none;white-space:pre;tab-size:4;color:var(--fg)}
.tbx-edit-lines{position:relative}.tbx-edit-lines>div{height:18px}
.tbx .tbx-edit-bad{position:absolute;left:-6px;right:0;height:18px;background:var(--changed);border-left:3px solid var(--bad)}
.tbx .tbx-edit-carets{position:absolute;height:18px;border-bottom:2px solid var(--bad)}
.tbx-edit-problem{flex:0 1 auto;max-height:45%;overflow:auto;border-top:1px solid var(--line)}
.tbx-edit-problem .tbx-button{line-height:16px;font-size:12px}
.tbx-head>.tbx-icons{flex:0 0 auto}.tbx-head>.tbx-delta{flex:0 1 auto;min-width:0;overflow:hidden;text-overflow:ellipsis}
.tbx-pane.tbx-edited>.tbx-head{box-shadow:inset 0 3px var(--warn)}
.tbx-save{position:relative}.tbx-buttons[hidden]+.tbx-save{margin-left:auto}
.tbx-save-list{position:absolute;right:0;top:100%;z-index:5;width:min(560px,70vw);padding:8px 10px;background:var(--bg);border:1px solid var(--line);
border-radius:6px;box-shadow:0 4px 14px rgba(0,0,0,.25);font-size:12px}
.tbx-save-list>div{display:flex;align-items:baseline;gap:8px;padding:3px 0;white-space:normal}
.tbx-save-list>div>.tbx-button{flex:0 0 130px;text-align:left}
.tbx-save-list>.tbx-save-position{flex-wrap:wrap;border-top:1px solid var(--line);margin-top:4px;padding-top:6px}
.tbx .tbx-save-position>.tbx-button{flex:0 0 auto}
.tbx .tbx-save-line{flex:1 1 100%;min-width:0;order:1;font:12px var(--jp-code-font-family,ui-monospace,monospace);padding:1px 5px}
.tbx .tbx-pin-name{width:130px;line-height:18px;padding:0 5px}
.tbx-point.tbx-edited circle{stroke:var(--warn);stroke-width:2;stroke-dasharray:2 2}
.tbx-stages .tbx-button.tbx-edited{border-color:var(--warn);color:var(--warn)}
`;
