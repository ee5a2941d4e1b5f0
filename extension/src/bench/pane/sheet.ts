/** The rows of a pane: only those that are seen are drawn, so that 5,000 lines scroll as lightly as fifty. */

import { elementOf, make } from '../../dom';
import { Fold, foldAt, Row, rowsOf } from '../text/rows';
import { fittingGutters, Look, margin, ROW, rowElement } from './row';

/** Rows drawn above and below what is seen. */
const SPARE = 12;

/** The room of a sheet in pixels, with the width of a letter. */
export interface Size {
  readonly width: number;
  readonly height: number;
  readonly letter: number;
}

export class Sheet {
  readonly view: HTMLElement;
  readonly marks = make('div', { class: 'tbx-marks', 'aria-hidden': 'true' });
  readonly sheet = make('div', { class: 'tbx-sheet', role: 'presentation' });
  private rows: Row[] = [];
  private rowOf = new Map<number, number>();
  private drawn = '';
  private size: Size = { width: 0, height: 0, letter: 7.2 };
  /** Where it is scrolled to. Kept here, for asking the page makes it lay out all that was changed since. */
  private place: readonly [top: number, left: number] = [0, 0];
  wrap = true;

  /** What is folded at first, and can be folded again. */
  private readonly first: readonly Fold[];

  /** `quiet` stands in place of a text that is not made yet. */
  constructor(private readonly look: Look, label: string, public folds: Fold[], private readonly quiet: string) {
    this.first = folds;
    this.view = make('div', { class: 'tbx-code', tabindex: '0', role: 'listbox', 'aria-labelledby': label }, this.sheet);
    this.view.addEventListener('scroll', () => this.scrolledTo(), { passive: true });
  }

  /** How much room there is; `letter` where it is known. */
  measure(letter = this.letter()): Size {
    return { width: this.view.clientWidth, height: this.view.clientHeight, letter };
  }

  /** Where it is scrolled to; what is set holds from the next layout on. */
  get scrolled(): readonly [top: number, left: number] {
    return this.place;
  }

  set scrolled(place: readonly [top: number, left: number]) {
    this.place = place;
  }

  /** Lay the text out for the room that there is; to be called when that has changed. */
  layout(size = this.measure()): void {
    this.size = size;
    // Border, padding of the number, and the marks at the right edge.
    const letters = Math.floor((size.width - 22) / size.letter);
    this.look.shown = fittingGutters(this.look, letters);
    this.rows = rowsOf(this.look.lines, this.wrap ? Math.max(20, letters - margin(this.look)) : 0, this.folds);
    this.rowOf = new Map();
    this.rows.forEach((row, at) => {
      if (!this.rowOf.has(row.line)) {
        this.rowOf.set(row.line, at);
      }
    });
    this.sheet.style.height = `${this.rows.length * ROW + 8}px`;
    const widest = this.look.lines.reduce((most, line) => Math.max(most, line.length), 0);
    this.sheet.style.width = this.wrap ? '100%' : `calc(${widest + margin(this.look) + 5}ch)`;
    if (this.place[0] > 0 || this.place[1] > 0) {
      this.scroll(...this.place);
    }
    this.redraw();
  }

  /** How many rows are seen at once. */
  get height(): number {
    return Math.max(1, Math.floor(this.size.height / ROW));
  }

  /** Scroll to the row of a line where it is out of sight; a fold that hides it opens, and `into` one that stands for it. */
  reveal(line: number, into = true): void {
    const open = this.folds.filter(fold => line < fold.from || line >= fold.to || (line === fold.from && !into));
    if (open.length < this.folds.length) {
      this.folds = open;
      this.layout();
    }
    const top = (this.rowOf.get(line) ?? 0) * ROW;
    if (top < this.place[0] || top > this.place[0] + this.size.height - 2 * ROW) {
      this.scroll(Math.max(0, top - Math.floor(this.size.height / 3)), this.place[1]);
    }
  }

  /** Where a step from a line to another ends: a fold is one line, and is stepped over. */
  stepTo(now: number, line: number): number {
    const fold = this.folds.find(each => line > each.from && line < each.to);
    return fold === undefined ? line : line > now && fold.to < this.look.lines.length ? fold.to : fold.from;
  }

  /** Fold or open the block of a line; whether there is one. */
  toggleFold(line: number): boolean {
    const without = this.folds.filter(fold => fold.from !== line);
    if (without.length < this.folds.length) {
      this.folds = without;
      this.layout();
      return true;
    }
    const fold = this.first.find(each => line >= each.from && line < each.to) ?? foldAt(this.look.lines, line);
    if (fold === null) {
      return false;
    }
    const open = this.folds.filter(each => each.from !== fold.from);
    this.folds = open.length < this.folds.length ? open : [...this.folds.filter(each => each.from < fold.from || each.from >= fold.to), fold];
    this.layout();
    return true;
  }

  /** Draw the rows that are seen where they are not drawn yet. */
  draw(): void {
    if (this.quiet !== '') {
      this.sheet.replaceChildren(make('p', { class: 'tbx-quiet tbx-pending' }, this.quiet));
      return;
    }
    const top = Math.max(0, Math.floor(this.place[0] / ROW) - SPARE);
    const end = Math.min(this.rows.length, top + this.height + 2 * SPARE);
    const key = `${top} ${end}`;
    if (key === this.drawn) {
      return;
    }
    this.drawn = key;
    this.sheet.replaceChildren(...this.rows.slice(top, end).map((row, at) => rowElement(this.look, row, top + at, this.folds)));
    // What a screen reader reads is the line of now, where it is drawn.
    this.view.setAttribute('aria-activedescendant', `${this.look.id}-${this.look.current}-0`);
  }

  /** Draw them again: how they look has changed. */
  redraw(): void {
    this.drawn = '';
    this.draw();
  }

  /** Light up what `look.lit` has. The rows stay: made anew under a resting pointer they would be entered again and again. */
  light(): void {
    for (const row of this.sheet.querySelectorAll<HTMLElement>('.tbx-row')) {
      row.classList.toggle('tbx-lit', this.look.lit.has(Number(row.dataset['line'])));
    }
  }

  /** The marks at the right edge, at the places of lines. */
  mark(kinds: readonly (readonly [string, Iterable<number>])[]): void {
    const scale = 100 / Math.max(1, this.rows.length);
    const mark = (line: number, kind: string): HTMLElement =>
      make('b', { class: kind, style: `top:${((this.rowOf.get(line) ?? 0) * scale).toFixed(2)}%` });
    this.marks.replaceChildren(...kinds.flatMap(([kind, lines]) => [...lines].slice(0, 400).map(line => mark(line, kind))));
  }

  /** Whether a place is the number or the sign of a fold, where a click folds. */
  foldsAt(place: EventTarget | null): boolean {
    return (elementOf(place)?.closest('.tbx-folded, .tbx-number') ?? null) !== null;
  }

  /** The line that an event happened on. */
  lineAt(event: Event): number | null {
    const row = elementOf(event.target)?.closest<HTMLElement>('.tbx-row') ?? null;
    return row === null ? null : Number(row.dataset['line']);
  }

  /** The elements of a line's rows that are drawn. */
  rowElements(line: number): readonly HTMLElement[] {
    return [...this.sheet.querySelectorAll<HTMLElement>(`.tbx-row[data-line="${line}"]`)];
  }

  private scroll(top: number, left: number): void {
    [this.view.scrollTop, this.view.scrollLeft] = [top, left];
    this.place = [this.view.scrollTop, this.view.scrollLeft];
  }

  private scrolledTo(): void {
    this.place = [this.view.scrollTop, this.view.scrollLeft];
    this.draw();
  }

  private letter(): number {
    const probe = make('span', { class: 'tbx-probe' }, 'x'.repeat(50));
    this.sheet.append(probe);
    const width = probe.getBoundingClientRect().width / 50 || 7.2;
    probe.remove();
    return width;
  }
}
