/** What stands under the text that is typed: its colours, and where it is wrong. Only changed lines are drawn anew. */

import { make } from '../../dom';
import { pieces } from '../../highlight';
import { ROW } from '../pane/row';

/** Texts of more lines are drawn without colours: each line is a dozen elements. */
const MOST_COLOURED = 4000;

/** Where a text is wrong: its line from 1, and characters from 0; `end` 0 where the whole line is meant. */
interface Wrong {
  readonly line: number;
  readonly column: number;
  readonly end: number;
}

export class Backdrop {
  readonly element = make('div', { class: 'tbx-edit-back', 'aria-hidden': 'true' });
  readonly numbers = make('div', { class: 'tbx-edit-numbers', 'aria-hidden': 'true' });
  private readonly bad = make('div', { class: 'tbx-edit-bad', hidden: '' });
  private readonly carets = make('div', { class: 'tbx-edit-carets', hidden: '' });
  private readonly text = make('div', { class: 'tbx-edit-lines' });
  private lines: string[] = [];

  constructor(private readonly language: string) {
    this.element.append(this.bad, this.text, this.carets);
  }

  /** Draw these lines; gives the letters of the longest. */
  show(lines: readonly string[]): number {
    const old = this.lines;
    const least = Math.min(old.length, lines.length);
    let head = 0;
    while (head < least && old[head] === lines[head]) {
      head += 1;
    }
    let tail = 0;
    while (tail < least - head && old[old.length - 1 - tail] === lines[lines.length - 1 - tail]) {
      tail += 1;
    }
    const gone = [...this.text.children].slice(head, old.length - tail);
    const fresh = lines.slice(head, lines.length - tail).map(line => this.row(line, lines.length));
    const next = this.text.children[old.length - tail] ?? null;
    gone.forEach(row => row.remove());
    fresh.forEach(row => this.text.insertBefore(row, next));
    if (lines.length !== old.length) {
      this.numbers.textContent = lines.map((_, at) => at + 1).join('\n');
    }
    this.lines = [...lines];
    return lines.reduce((most, line) => Math.max(most, line.length), 0);
  }

  /** Mark where it is wrong; null takes the mark away. */
  mark(wrong: Wrong | null): void {
    this.bad.hidden = this.carets.hidden = wrong === null;
    if (wrong !== null) {
      const line = this.lines[wrong.line - 1] ?? '';
      const start = wrong.end > wrong.column ? wrong.column : line.length - line.trimStart().length;
      const end = wrong.end > wrong.column ? wrong.end : line.length;
      this.bad.style.top = this.carets.style.top = `${(wrong.line - 1) * ROW}px`;
      this.carets.style.left = `${start}ch`;
      this.carets.style.width = `${Math.max(1, end - start)}ch`;
    }
  }

  private row(line: string, count: number): HTMLElement {
    const parts = count > MOST_COLOURED ? [line] : pieces(line, this.language).map(([text, kind]) => make('span', { class: `tb-t-${kind}` }, text));
    return make('div', {}, ...parts);
  }
}
