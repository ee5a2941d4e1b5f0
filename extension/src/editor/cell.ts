/** What an editor's extensions know of the cell that they are in: its text, its number, its outputs. */

import { syntaxTree } from '@codemirror/language';
import { EditorState } from '@codemirror/state';
import { mismatch } from '../check';
import { Mark, Marks, MARKS_MIME, SHAPES } from './mark';

/** The beginning of a cell of ours. */
export const MAGIC = /^\s*%%tile\b/;
/** A word of the tile language, and an option of the magic. */
export const WORD = /(?<![\w.])T\.([A-Za-z_]\w*)/g;
export const OPTION = /(?<=\s)--[A-Za-z][\w-]*/g;

interface Signal {
  connect(slot: () => void): void;
  disconnect(slot: () => void): void;
}

/** The part of JupyterLab's model of a code cell that is used here; a plain editor's has only the first. */
export interface CellModel {
  readonly mimeType: string;
  readonly executionCount?: number | null;
  readonly stateChanged?: Signal;
  readonly outputs?: {
    readonly length: number;
    get(at: number): { readonly data: Readonly<Record<string, unknown>> };
    readonly changed: Signal;
    readonly stateChanged: Signal;
  };
}

export function isTileCell(state: EditorState): boolean {
  return MAGIC.test(state.doc.line(1).text);
}

/** Whether a place of the text is code, as far as it has been parsed: no string, no comment. */
export function isCode(state: EditorState, at: number): boolean {
  return !/String|Comment/.test(syntaxTree(state).resolveInner(at, 1).name);
}

/** What the outputs of a cell hold of marks; what has another shape is left out. */
function marksOf(model: CellModel): Marks[] {
  const out: Marks[] = [];
  for (let at = 0; at < (model.outputs?.length ?? 0); at += 1) {
    const data = model.outputs?.get(at).data[MARKS_MIME];
    if (data !== undefined && mismatch(data, 'Marks', 'marks', SHAPES) === null) {
      out.push(data as Marks);
    }
  }
  return out;
}

/** The marks of the cell's own last run, by the name that its kernel gives it. */
export function ownMarks(model: CellModel): Mark[] {
  const name = `Cell In[${model.executionCount ?? ''}]`;
  return marksOf(model).flatMap(found => found.marks.filter(mark => mark.file === name));
}

/** The benches that stand in the outputs of a cell. */
export function benchesOf(model: CellModel): string[] {
  return marksOf(model).map(found => found.bench).filter(bench => bench !== '');
}

/** Call `changed` whenever outputs or the number of a cell change; gives what ends it. */
export function watch(model: CellModel, changed: () => void): () => void {
  const signals = [model.outputs?.changed, model.outputs?.stateChanged, model.stateChanged];
  for (const signal of signals) {
    signal?.connect(changed);
  }
  return () => {
    for (const signal of signals) {
      signal?.disconnect(changed);
    }
  };
}
