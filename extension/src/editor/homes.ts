/** The tile cells that stand in the page, and which of them a bench belongs to. */

import { elementOf } from '../dom';
import { EditorView } from '@codemirror/view';
import { pages } from '../window';
import { benchesOf, CellModel } from './cell';

/** An editor with its cell. */
export interface Home {
  readonly view: EditorView;
  readonly model: CellModel;
  /** Called when a bench came to stand somewhere, or has another kernel now. */
  readonly came: () => void;
}

const homes = new Set<Home>();

export function enter(home: Home): () => void {
  homes.add(home);
  return () => void homes.delete(home);
}

/** A bench came to stand somewhere, or has another kernel now: each cell looks whether it is its own. */
export function benchCame(): void {
  for (const home of homes) {
    home.came();
  }
}

function notebookOf(element: Element): Element | null {
  return element.closest('.jp-Notebook');
}

function nameOf(home: Home): string {
  return `Cell In[${home.model.executionCount ?? ''}]`;
}

/** The cell that shows a bench: it stands in its outputs, or its outputs are shown elsewhere too. */
export function showing(bench: Element): Home | null {
  const id = elementOf(bench)?.dataset['bench'] ?? '';
  for (const home of homes) {
    if (home.view.dom.closest('.jp-Cell')?.contains(bench) || (id !== '' && benchesOf(home.model).includes(id))) {
      return home;
    }
  }
  return null;
}

/** The cell with the kernel of a bench, which may be another one than shows it. */
export function written(bench: HTMLElement): Home | null {
  const file = bench.dataset['file'] ?? '';
  const shows = showing(bench);
  const book = notebookOf(shows?.view.dom ?? bench);
  if (shows !== null && nameOf(shows) === file) {
    return shows;
  }
  return [...homes].find(home => nameOf(home) === file && book !== null && notebookOf(home.view.dom) === book) ?? null;
}

/** Every bench in the page and its windows whose kernel stands in a cell, wherever it is shown. */
export function benches(home: Home): HTMLElement[] {
  const all = pages().flatMap(page => [...page.querySelectorAll<HTMLElement>('.tbx[data-file]')]);
  return all.filter(bench => written(bench) === home);
}

/** The cell of an element, of an editor for example. */
export function homeAt(element: Element | null): Home | null {
  const cell = element?.closest('.jp-Cell') ?? null;
  return cell === null ? null : ([...homes].find(home => cell.contains(home.view.dom)) ?? null);
}
