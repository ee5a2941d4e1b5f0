/**
 * The way between a bench and the cell that it belongs to: events of the page, so that a bench needs to know no
 * notebook. Where nobody edits cells with our extension, nobody listens, and nothing is offered.
 */

/** To a bench: show the stage lines of a line of its kernel. */
export const SHOW_LINE = 'tilebench-show-line';
/** From a bench: select a line in the editor. */
export const EDIT_LINE = 'tilebench-edit-line';
/** From a bench: these lines are pinned now. */
export const PINNED = 'tilebench-pinned';
/** From a bench: it came to stand in the page, or has the kernel of another cell now. */
export const CAME = 'tilebench-came';
/** From a bench: show it in a panel of its own. */
export const OPEN_PANEL = 'tilebench-open-panel';
/** From a bench: show it in a window of its own. */
export const OPEN_WINDOW = 'tilebench-open-window';

/** A line of a kernel's source: its number in the cell, and its text, by which it is found after edits. */
export interface SourceLine {
  readonly line: number;
  readonly text: string;
}

const LISTENING = 'tilebenchEditor';

/** Say that there is an editor which hears what benches say. */
export function editorIsHere(): void {
  document.documentElement.dataset[LISTENING] = 'true';
}

/** Whether there is one. */
export function hasEditor(): boolean {
  return document.documentElement.dataset[LISTENING] === 'true';
}

/** Tell the page something of a place in a bench; whether somebody did what it asks for. */
export function tell<Detail>(from: Element, name: string, detail: Detail): boolean {
  return !from.dispatchEvent(new CustomEvent(name, { bubbles: true, cancelable: true, detail }));
}

/** Of lines with a text, the one nearest to a number; null where none has it. Lines count from `first`. */
export function nearestLine(count: number, textOf: (line: number) => string, wanted: SourceLine, first = 1): number | null {
  for (let away = 0; away < count; away += 1) {
    for (const line of away === 0 ? [wanted.line] : [wanted.line - away, wanted.line + away]) {
      if (line >= first && line < first + count && textOf(line) === wanted.text) {
        return line;
      }
    }
  }
  return null;
}
