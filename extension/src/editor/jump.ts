/**
 * Between the lines of a tile cell and those of its benches: a mark beside each line and a key pin it in every
 * pane, and what is pinned there is marked here.
 */

import { Extension, Prec, RangeSetBuilder, StateEffect, StateField } from '@codemirror/state';
import { Decoration, DecorationSet, EditorView, gutter, GutterMarker, keymap, ViewPlugin } from '@codemirror/view';
import { nearestLine, SHOW_LINE, SourceLine } from '../bench/cell/link';
import { make } from '../dom';
import { CellModel, watch } from './cell';
import { benches, enter, Home, homeAt } from './homes';

const setPinned = StateEffect.define<readonly number[]>();
const setOffered = StateEffect.define<boolean>();
const pinnedLine = Decoration.line({ class: 'tb-pinned-line' });

const pinned = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update: (old, tr) => {
    let now = old.map(tr.changes);
    for (const effect of tr.effects) {
      if (effect.is(setPinned)) {
        const builder = new RangeSetBuilder<Decoration>();
        for (const line of [...effect.value].sort((a, b) => a - b)) {
          builder.add(tr.state.doc.line(line).from, tr.state.doc.line(line).from, pinnedLine);
        }
        now = builder.finish();
      }
    }
    return now;
  },
  provide: field => EditorView.decorations.from(field)
});

/** Whether a bench of this cell stands in the page. */
const offered = StateField.define<boolean>({
  create: () => false,
  update: (old, tr) => tr.effects.reduce((now, effect) => (effect.is(setOffered) ? effect.value : now), old)
});

class JumpMarker extends GutterMarker {
  override toDOM(): Node {
    return make('span', { class: 'tb-jump', title: 'show the stages of this line (Ctrl Alt J)' }, '\u25b8');
  }
}
const marker = new JumpMarker();

/** Pin a line of the editor in its benches; whether there was one. */
export function showStages(view: EditorView, at = view.state.selection.main.head): boolean {
  const home = homeAt(view.dom);
  const found = home === null ? [] : benches(home);
  const line = view.state.doc.lineAt(at);
  const detail: SourceLine = { line: line.number, text: line.text };
  for (const bench of found) {
    bench.dispatchEvent(new CustomEvent<SourceLine>(SHOW_LINE, { detail }));
  }
  found[0]?.scrollIntoView({ block: 'nearest' });
  return found.length > 0;
}

/** The line of an editor that a line of a kernel is now; null where its text is gone. */
function lineIn(view: EditorView, wanted: SourceLine): number | null {
  const { doc } = view.state;
  return nearestLine(doc.lines, line => doc.line(line).text, wanted);
}

/** Select a line of a kernel in its editor. */
export function editLine(home: Home, wanted: SourceLine): void {
  const { view } = home;
  const line = view.state.doc.line(lineIn(view, wanted) ?? Math.min(wanted.line, view.state.doc.lines));
  view.focus();
  view.dispatch({ selection: { anchor: line.from, head: line.to }, effects: EditorView.scrollIntoView(line.from, { y: 'center' }) });
  view.dom.closest('.jp-Cell')?.scrollIntoView({ block: 'nearest' });
}

/** Mark the lines that are pinned in a bench. */
export function markPinned(home: Home, wanted: readonly SourceLine[]): void {
  const lines = wanted.map(each => lineIn(home.view, each)).filter(line => line !== null);
  home.view.dispatch({ effects: setPinned.of(lines) });
}

function watcher(model: CellModel): Extension {
  return ViewPlugin.define(view => {
    let waiting: number | undefined;
    // Once for all that comes together. A bench says by itself when it came, however late: see `benchCame`.
    const look = (): void => {
      window.clearTimeout(waiting);
      waiting = window.setTimeout(() => {
        const now = benches(home).length > 0;
        if (view.dom.isConnected && view.state.field(offered, false) === !now) {
          view.dispatch({ effects: setOffered.of(now) });
        }
      }, 300);
    };
    const home: Home = { view, model, came: look };
    const leave = enter(home);
    const end = watch(model, look);
    look();
    return { destroy: () => (window.clearTimeout(waiting), end(), leave()) };
  });
}

/** The extension of one tile cell. */
export function jump(model: CellModel): Extension {
  return [
    watcher(model), pinned, offered,
    gutter({
      class: 'tb-jump-gutter',
      lineMarker: (view, line) => (view.state.field(offered) && line.from > 0 ? marker : null),
      lineMarkerChange: update => update.transactions.some(tr => tr.effects.some(effect => effect.is(setOffered))),
      domEventHandlers: { mousedown: (view, line) => showStages(view, line.from) }
    }),
    Prec.high(keymap.of([{ key: 'Ctrl-Alt-j', run: view => showStages(view) }]))
  ];
}

