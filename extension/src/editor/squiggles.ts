/**
 * Errors and warnings of the cell's last run at their ranges, with those that need no run: wavy lines, marks
 * beside the line numbers, the message on hover, F8 from one to the next.
 *
 * A mark of a run finds its line by its text, so that edits elsewhere move it along, and an edit there ends it.
 */

import { Diagnostic, forEachDiagnostic, lintGutter, linter } from '@codemirror/lint';
import { EditorState, Extension, Prec, StateEffect, Text } from '@codemirror/state';
import { EditorView, keymap, ViewPlugin, ViewUpdate } from '@codemirror/view';
import { nearestLine } from '../bench/cell/link';
import { make } from '../dom';
import { CellModel, isTileCell, ownMarks, watch } from './cell';
import { liveMarks } from './live';
import { Mark } from './mark';

const SEVERITIES: Readonly<Record<string, Diagnostic['severity']>> = { error: 'error', warning: 'warning' };
const refresh = StateEffect.define<null>();

/** Letters as Python counts them to letters as the editor does. */
function units(text: string, letters: number): number {
  return [...text].slice(0, letters).join('').length;
}

/** Where a mark stands now; null where its text is gone. A mark without an end takes its line. */
function rangeOf(doc: Text, mark: Mark): { from: number; to: number } | null {
  const number = nearestLine(doc.lines, line => doc.line(line).text, mark);
  if (number === null) {
    return null;
  }
  const line = doc.line(number);
  const indent = line.text.length - line.text.trimStart().length;
  const from = line.from + Math.min(Math.max(units(line.text, mark.column), indent), line.length);
  const last = mark.end_line > mark.line ? doc.line(Math.min(doc.lines, number + mark.end_line - mark.line)) : line;
  const end = mark.end_column > 0 ? Math.min(last.to, last.from + units(last.text, mark.end_column)) : line.to;
  return { from, to: Math.max(end, Math.min(from + 1, doc.length)) };
}

function message(mark: Mark): HTMLElement {
  const out = make('div', { class: 'tb-mark' }, make('p', {}, mark.what));
  if (mark.details.length > 0) {
    out.append(make('dl', {}, ...mark.details.flatMap(([label, said]) => [make('dt', {}, label ?? ''), make('dd', {}, said ?? '')])));
  }
  return out;
}

function diagnostic(doc: Text, mark: Mark): Diagnostic | null {
  const range = rangeOf(doc, mark);
  if (range === null) {
    return null;
  }
  const details = mark.details.map(([label, said]) => `${label}: ${said}`);
  const severity = SEVERITIES[mark.severity] ?? 'info';
  return { ...range, severity, message: [mark.what, ...details].join('\n'), renderMessage: () => message(mark) };
}

function diagnostics(state: EditorState, model: CellModel): Diagnostic[] {
  if (!isTileCell(state)) {
    return [];
  }
  const run = ownMarks(model).map(mark => diagnostic(state.doc, mark)).filter(found => found !== null);
  // What a run has said of a place it said better.
  const live = liveMarks(state).filter(mark => !run.some(found => found.from < mark.to && mark.from < found.to));
  return [...run, ...live].sort((a, b) => a.from - b.from || a.to - b.to);
}

function all(state: EditorState): Diagnostic[] {
  const out: Diagnostic[] = [];
  forEachDiagnostic(state, (found, from, to) => out.push({ ...found, from, to }));
  return out.sort((a, b) => a.from - b.from);
}

function said(state: EditorState, found: Diagnostic): string {
  return `${found.severity}, line ${state.doc.lineAt(found.from).number}: ${found.message}`;
}

/** Select the next mark behind the cursor (before it with `by` -1), around the end; and read it out. */
function step(by: number): (view: EditorView) => boolean {
  return view => {
    const found = all(view.state);
    const { from, to } = view.state.selection.main;
    const behind = found.filter(mark => (by > 0 ? mark.from > from || (mark.from === from && mark.to > to) : mark.from < from));
    const next = by > 0 ? (behind[0] ?? found[0]) : (behind[behind.length - 1] ?? found[found.length - 1]);
    if (next === undefined) {
      return false;
    }
    view.dispatch({
      selection: { anchor: next.from, head: next.to },
      scrollIntoView: true,
      effects: EditorView.announce.of(said(view.state, next))
    });
    return true;
  };
}

/** Looks at the outputs of the cell; tells a screen reader when a run has left other marks. */
function watcher(model: CellModel): Extension {
  return ViewPlugin.define(view => {
    let told = '';
    const look = (): void => {
      const marks = ownMarks(model);
      const now = marks.map(mark => mark.what).join('\n');
      if (now === told) {
        return;
      }
      told = now;
      const text = `${marks.length} mark${marks.length === 1 ? '' : 's'} of the run in this cell; F8 goes to the next.`;
      // Signals may come while the editor updates itself.
      queueMicrotask(() => {
        const effects: StateEffect<unknown>[] = [refresh.of(null)];
        view.dispatch({ effects: marks.length > 0 ? [...effects, EditorView.announce.of(text)] : effects });
      });
    };
    const end = watch(model, look);
    look();
    return { destroy: end };
  });
}

/** Whether the cursor has left the line that was being typed: what was no name yet is one now. */
function leftLine(update: ViewUpdate): boolean {
  const line = (state: EditorState): number => state.doc.lineAt(state.selection.main.head).number;
  return update.focusChanged || (update.selectionSet && line(update.startState) !== line(update.state));
}

/** The extension of one tile cell. */
export function squiggles(model: CellModel): Extension {
  return [
    watcher(model),
    linter(view => diagnostics(view.state, model), {
      delay: 150,
      needsRefresh: update => update.transactions.some(tr => tr.effects.some(effect => effect.is(refresh))) || leftLine(update)
    }),
    lintGutter(),
    Prec.high(keymap.of([{ key: 'F8', run: step(1), shift: step(-1) }]))
  ];
}

