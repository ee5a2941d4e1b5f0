/** One stage's text: virtual rows, so that 5,000 lines of SASS scroll as lightly as fifty. */

import { freshId, make } from '../dom';
import { pieces } from '../highlight';
import { CompileRecord, StageRecord } from '../record';
import { diffTexts, LineChange, summary, TextDiff } from './text/diff';
import { Reading } from './reading';
import { Kin } from './text/links';
import { marked } from './text/marked';
import { firstFolds, Fold, foldAt, Row, rowsOf } from './text/rows';

/** Pixels of a row; the style sheet has the same. */
export const ROW = 18;
/** Rows drawn above and below what is seen. */
const SPARE = 12;

export type Highlight = (line: string) => readonly (readonly [string, string])[];

/** What a pane tells the row of panes that it stands in. */
export interface PaneHost {
  /** The line (from 0) under the pointer or the keyboard; null when it left. */
  pointed(pane: Pane, line: number | null): void;
  pinned(pane: Pane, line: number): void;
  /** A command by key, such as `m` to maximise. Whether it was one. */
  command(pane: Pane, key: string): boolean;
}

export class Pane {
  readonly element: HTMLElement;
  readonly kin: Kin;
  readonly lines: readonly string[];
  private readonly view: HTMLElement;
  private readonly sheet: HTMLElement;
  private readonly marks: HTMLElement;
  private readonly delta: HTMLElement;
  private readonly search: HTMLInputElement;
  private readonly found: HTMLElement;
  private readonly first: number;
  private rows: Row[] = [];
  private rowOf = new Map<number, number>();
  private folds: Fold[];
  private diff: TextDiff | null = null;
  private lit: ReadonlySet<number> = new Set();
  private hits: number[] = [];
  private drawn = '';
  private readonly id = freshId('tbx-pane');
  current = 0;
  wrap = true;

  constructor(
    readonly record: CompileRecord,
    readonly stage: StageRecord,
    title: string,
    private readonly host: PaneHost,
    emitted: boolean
  ) {
    this.lines = stage.text === '' ? [] : stage.text.replace(/\n$/, '').split('\n');
    this.first = stage.name === 'source' ? record.source_first_line : 1;
    this.kin = new Kin(record, stage, this.lines.length);
    this.folds = firstFolds(this.lines.length, at => this.kin.sources(at).length > 0, emitted && stage.lines.length > 0);
    const label = freshId('tbx-stage');
    this.delta = make('span', { class: 'tbx-delta' });
    this.found = make('span', { class: 'tbx-found', role: 'status' });
    this.search = make('input', { class: 'tbx-search', type: 'search', 'aria-label': `search ${stage.name}`, hidden: '' });
    this.sheet = make('div', { class: 'tbx-sheet', role: 'presentation' });
    this.marks = make('div', { class: 'tbx-marks', 'aria-hidden': 'true' });
    this.view = make('div', { class: 'tbx-code', tabindex: '0', role: 'listbox', 'aria-labelledby': label }, this.sheet);
    this.element = make('section', { class: 'tbx-pane', 'data-stage': stage.name }, this.header(label, title), this.view, this.marks);
    this.listen();
  }

  /** Compare with another text, or with nothing. */
  compare(old: readonly string[] | null): void {
    this.diff = old === null ? null : diffTexts(old, this.lines);
    this.delta.textContent = this.diff === null ? '' : summary(this.diff);
    this.drawn = '';
    this.draw();
  }

  /** Lay the text out for the pane's width; to be called when that has changed. */
  layout(): void {
    // Border, padding of the number, and the marks at the right edge.
    const columns = this.wrap ? Math.max(20, Math.floor((this.view.clientWidth - 22) / this.letter()) - this.digits() - 1) : 0;
    this.rows = rowsOf(this.lines, columns, this.folds);
    this.rowOf = new Map();
    this.rows.forEach((row, at) => {
      if (!this.rowOf.has(row.line)) {
        this.rowOf.set(row.line, at);
      }
    });
    this.sheet.style.height = `${this.rows.length * ROW + 8}px`;
    const widest = this.lines.reduce((most, line) => Math.max(most, line.length), 0);
    this.sheet.style.width = this.wrap ? '100%' : `calc(${widest + this.digits() + 6}ch)`;
    this.drawn = '';
    this.draw();
    this.drawMarks();
  }

  /** Light up lines; `reveal` scrolls to the row of a line, in this pane alone. */
  light(lines: readonly number[], reveal: number | null): void {
    this.lit = new Set(lines);
    if (reveal !== null) {
      this.reveal(reveal);
    }
    // The rows that stand stay: rows made anew under a resting pointer would be entered again and again.
    for (const row of this.sheet.querySelectorAll<HTMLElement>('.tbx-row')) {
      row.classList.toggle('tbx-lit', this.lit.has(Number(row.dataset['line'])));
    }
    this.drawMarks();
  }

  /** How many rows are seen at once. */
  get height(): number {
    return Math.max(1, Math.floor(this.view.clientHeight / ROW));
  }

  focus(): void {
    this.view.focus({ preventScroll: true });
  }

  /** How it is read now; to be asked while it stands in the page, for what is taken out forgets its scrolling. */
  get reading(): Reading {
    const { wrap, current, folds, view, lines } = this;
    const [top, left, focused] = [view.scrollTop, view.scrollLeft, this.hasFocus];
    return { wrap, current, folds, lines: lines.length, top, left, focused };
  }

  /** Be read as another pane of the same stage was; folds stay where the text has as many lines. */
  readAs(other: Reading): void {
    this.wrap = other.wrap;
    this.current = Math.min(other.current, Math.max(0, this.lines.length - 1));
    this.folds = other.lines === this.lines.length ? [...other.folds] : this.folds;
    this.layout();
    [this.view.scrollTop, this.view.scrollLeft] = [other.top, other.left];
    this.draw();
  }

  get hasFocus(): boolean {
    return document.activeElement === this.view;
  }

  private header(label: string, title: string): HTMLElement {
    const count = `${this.lines.length} line${this.lines.length === 1 ? '' : 's'}`;
    const ms = this.stage.seconds > 0 ? [`${(this.stage.seconds * 1000).toPrecision(2)} ms`] : [];
    const facts = [title, this.stage.pending ? 'not made yet' : count, ...ms];
    const button = (text: string, name: string, key: string): HTMLElement => {
      const said = { title: `${name} (${key})`, 'aria-label': `${name}: ${this.stage.name}` };
      const out = make('button', { type: 'button', class: 'tbx-icon', ...said }, text);
      out.addEventListener('click', () => this.key(key));
      return out;
    };
    return make(
      'header',
      { class: 'tbx-head' },
      make('strong', { id: label }, this.stage.name),
      make('span', { class: 'tbx-quiet tbx-facts' }, facts.join(' \u00b7 ')),
      this.delta,
      this.search,
      this.found,
      button('\u2315', 'search', '/'),
      button('\u21b5', 'wrap lines', 'w'),
      button('\u2922', 'fill the bench', 'm'),
      button('\u00d7', 'close the pane', 'x')
    );
  }

  private listen(): void {
    this.view.addEventListener('scroll', () => this.draw(), { passive: true });
    this.view.addEventListener('keydown', event => {
      if (!event.ctrlKey && !event.metaKey && !event.altKey && this.key(event.key)) {
        // A notebook has commands on the same keys; these are ours while a pane has the focus.
        event.preventDefault();
        event.stopPropagation();
      }
    });
    this.sheet.addEventListener('pointerover', event => this.host.pointed(this, this.lineAt(event)));
    this.sheet.addEventListener('pointerleave', () => this.host.pointed(this, null));
    this.sheet.addEventListener('click', event => this.clicked(event));
    this.search.addEventListener('input', () => this.find());
    this.search.addEventListener('keydown', event => {
      event.stopPropagation();
      if (event.key === 'Enter') {
        this.step(event.shiftKey ? -1 : 1);
      } else if (event.key === 'Escape') {
        this.endSearch();
      }
    });
  }

  private clicked(event: MouseEvent): void {
    const line = this.lineAt(event);
    if (line === null) {
      return;
    }
    const folds = event.target instanceof Element && event.target.closest('.tbx-folded, .tbx-number') !== null;
    if (folds && this.toggleFold(line)) {
      return;
    }
    this.go(line, false);
    this.host.pinned(this, line);
  }

  private toggleFold(line: number): boolean {
    if (this.folds.some(fold => fold.from === line)) {
      this.folds = this.folds.filter(fold => fold.from !== line);
    } else {
      const fold = foldAt(this.lines, line);
      if (fold === null) {
        return false;
      }
      const open = this.folds.filter(each => each.from !== fold.from);
      this.folds = open.length < this.folds.length ? open : [...this.folds.filter(each => each.from < fold.from || each.from >= fold.to), fold];
    }
    this.layout();
    return true;
  }

  private key(key: string): boolean {
    const last = this.lines.length - 1;
    const to = {
      ArrowDown: this.current + 1,
      ArrowUp: this.current - 1,
      PageDown: this.current + this.height,
      PageUp: this.current - this.height,
      Home: 0,
      End: last
    }[key];
    if (to !== undefined) {
      this.go(Math.min(last, Math.max(0, to)));
      return true;
    }
    switch (key) {
      case 'Enter':
        this.host.pinned(this, this.current);
        return true;
      case 'z':
        return this.toggleFold(this.current);
      case 'w':
        this.wrap = !this.wrap;
        this.layout();
        return true;
      case '/':
        this.search.hidden = false;
        this.search.focus();
        this.search.select();
        return true;
      case 'n':
      case 'N':
        this.step(key === 'n' ? 1 : -1);
        return true;
      default:
        return this.host.command(this, key);
    }
  }

  private go(line: number, reveal = true): void {
    this.current = line;
    if (reveal) {
      this.reveal(line);
    }
    this.drawn = '';
    this.draw();
    this.host.pointed(this, line);
  }

  private reveal(line: number): void {
    const open = this.folds.filter(fold => line < fold.from || line >= fold.to);
    if (open.length < this.folds.length) {
      this.folds = open;
      this.layout();
    }
    const top = (this.rowOf.get(line) ?? 0) * ROW;
    if (top < this.view.scrollTop || top > this.view.scrollTop + this.view.clientHeight - 2 * ROW) {
      this.view.scrollTop = Math.max(0, top - Math.floor(this.view.clientHeight / 3));
    }
  }

  private find(): void {
    const wanted = this.search.value.toLowerCase();
    this.hits = wanted === '' ? [] : this.lines.flatMap((line, at) => (line.toLowerCase().includes(wanted) ? [at] : []));
    this.step(0);
  }

  private step(by: number): void {
    if (this.hits.length === 0) {
      this.found.textContent = this.search.value === '' ? '' : 'none';
    } else {
      const now = this.hits.findIndex(at => at >= this.current);
      const from = now < 0 ? 0 : now;
      const at = by === 0 ? from : (from + (by > 0 && this.hits[from]! > this.current ? 0 : by) + this.hits.length) % this.hits.length;
      this.current = this.hits[at]!;
      this.found.textContent = `${at + 1}/${this.hits.length}`;
      this.reveal(this.current);
    }
    this.drawn = '';
    this.draw();
    this.drawMarks();
  }

  private endSearch(): void {
    this.search.value = '';
    this.search.hidden = true;
    this.found.textContent = '';
    this.hits = [];
    this.focus();
    this.drawn = '';
    this.draw();
  }

  private lineAt(event: Event): number | null {
    const row = event.target instanceof Element ? event.target.closest<HTMLElement>('.tbx-row') : null;
    return row === null ? null : Number(row.dataset['line']);
  }

  private digits(): number {
    return String(this.first + this.lines.length).length;
  }

  private letter(): number {
    const probe = make('span', { class: 'tbx-probe' }, 'x'.repeat(50));
    this.sheet.append(probe);
    const width = probe.getBoundingClientRect().width / 50 || 7.2;
    probe.remove();
    return width;
  }

  private draw(): void {
    if (this.stage.pending) {
      this.sheet.replaceChildren(make('p', { class: 'tbx-quiet tbx-pending' }, 'being made \u2026'));
      return;
    }
    const top = Math.max(0, Math.floor(this.view.scrollTop / ROW) - SPARE);
    const end = Math.min(this.rows.length, top + this.height + 2 * SPARE);
    const key = `${top} ${end}`;
    if (key === this.drawn) {
      return;
    }
    this.drawn = key;
    const digits = this.digits();
    const out: HTMLElement[] = [];
    for (let at = top; at < end; at += 1) {
      out.push(this.row(this.rows[at]!, at, digits));
    }
    this.sheet.replaceChildren(...out);
    // What a screen reader reads is the line of now, where it is drawn.
    this.view.setAttribute('aria-activedescendant', `${this.id}-${this.current}-0`);
  }

  private row(row: Row, at: number, digits: number): HTMLElement {
    const change = this.diff?.lines[row.line];
    const start = row.start === 0;
    const kinds = ['tbx-row', change === undefined ? '' : `tbx-${change.kind}`];
    kinds.push(this.lit.has(row.line) ? 'tbx-lit' : '', row.line === this.current && start ? 'tbx-now' : '');
    kinds.push(change !== undefined && change.removed.length > 0 && start ? 'tbx-cut' : '');
    const place = `top:${at * ROW + 4}px`;
    const number = String(this.first + row.line).padStart(digits);
    const attributes: Record<string, string> = {
      class: kinds.filter(Boolean).join(' '), style: place, id: `${this.id}-${row.line}-${row.start}`, 'data-line': String(row.line), role: 'option',
      'aria-selected': String(row.line === this.current)
    };
    if (row.folded > 0) {
      attributes['class'] += ' tbx-folded';
      const says = this.folds.find(fold => fold.from === row.line)?.says ?? '';
      return make('div', attributes, make('i', { class: 'tbx-number' }, '\u25b8'.padStart(digits)), ` ${row.folded} lines ${says}`);
    }
    if (change !== undefined && change.removed.length > 0 && start) {
      attributes['title'] = `gone before this line: ${change.removed.map(line => line.trim()).join(' | ')}`;
    }
    const sign = change === undefined ? ' ' : { same: ' ', changed: '~', new: '+' }[change.kind];
    const gutter = start ? `${number}${sign}` : ' '.repeat(digits + 1);
    return make('div', attributes, make('i', { class: 'tbx-number' }, gutter), ' '.repeat(row.indent), ...this.text(row, change));
  }

  private text(row: Row, change: LineChange | undefined): Node[] {
    const line = this.lines[row.line]!;
    const out: Node[] = [];
    const marks = change?.spans ?? [];
    const quiet = change?.kind === 'same';
    let at = 0;
    for (const [text, kind] of pieces(line, this.stage.language)) {
      const [from, to] = [Math.max(at, row.start), Math.min(at + text.length, row.end)];
      if (from < to) {
        out.push(...marked(line, from, to, quiet ? '' : kind, marks, this.search.value));
      }
      at += text.length;
      if (at >= row.end) {
        break;
      }
    }
    return out;
  }

  private drawMarks(): void {
    const scale = 100 / Math.max(1, this.rows.length);
    const mark = (line: number, kind: string): HTMLElement =>
      make('b', { class: kind, style: `top:${((this.rowOf.get(line) ?? 0) * scale).toFixed(2)}%` });
    const marks = (lines: Iterable<number>, kind: string): HTMLElement[] => [...lines].slice(0, 400).map(line => mark(line, kind));
    this.marks.replaceChildren(...marks(this.lit, 'tbx-mark-lit'), ...marks(this.hits, 'tbx-mark-hit'));
  }
}
