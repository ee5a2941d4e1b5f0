/** One stage's text with its header: rows, search, folds, gutters and what is said of a place, put together. */

import { focusedNear, freshId, make, onKey } from '../dom';
import { CompileRecord, StageRecord } from '../record';
import { PaneButton, PaneHost, PaneView } from './pane/door';
import { Head } from './pane/head';
import { Look } from './pane/row';
import { Search } from './pane/search';
import { Sheet, Size } from './pane/sheet';
import { Tip } from './pane/tip';
import { Reading } from './reading';
import { diffTexts, summary } from './text/diff';
import { linesOf } from './text/lines';
import { Kin } from './text/links';
import { definitionsFold, firstFolds } from './text/rows';
import { Sizes } from './text/sizes';

export class Pane implements PaneView {
  readonly element: HTMLElement;
  readonly kin: Kin;
  readonly lines: readonly string[];
  private readonly head: Head;
  private readonly look: Look;
  private readonly search: Search;
  private readonly sheet: Sheet;
  private readonly tip: Tip;
  private buttons: readonly PaneButton[] = [];
  private replaced: HTMLElement | null = null;

  constructor(
    readonly record: CompileRecord,
    readonly stage: StageRecord,
    title: string,
    private readonly host: PaneHost,
    emitted: boolean
  ) {
    this.lines = linesOf(stage.text);
    this.kin = new Kin(record, stage, this.lines.length);
    this.look = {
      lines: this.lines, language: stage.language, first: stage.name === 'source' ? record.source_first_line : 1, id: freshId('tbx-pane'),
      diff: null, lit: new Set(), current: 0, wanted: '', gutters: [], shown: [],
      explains: (line, token) => host.extras.map(extra => extra.explains?.(this, line, token) ?? '').filter(Boolean).join('\n')
    };
    const prelude = firstFolds(this.lines.length, at => this.kin.sources(at).length > 0, emitted && stage.lines.length > 0);
    const folds = [...prelude, ...definitionsFold(this.lines, Object.keys(stage.names))];
    const label = freshId('tbx-stage');
    this.sheet = new Sheet(this.look, label, folds, stage.pending ? 'being made \u2026' : '');
    this.search = new Search(stage.name, this.lines, () => this.current, line => this.found(line), () => this.searched());
    this.head = new Head(stage, label, title, this.lines.length, [this.search.input, this.search.found]);
    this.tip = new Tip(this.sheet.sheet, () => this.element);
    this.element = make(
      'section', { class: 'tbx-pane', 'data-stage': stage.name }, this.head.element, this.sheet.view, this.sheet.marks, this.tip.element
    );
    this.listen();
    this.renew();
    host.extras.forEach(extra => extra.made?.(this));
  }

  get current(): number {
    return this.look.current;
  }

  get height(): number {
    return this.sheet.height;
  }

  get hasFocus(): boolean {
    return focusedNear(this.sheet.view) === this.sheet.view;
  }

  focus(): void {
    this.sheet.view.focus({ preventScroll: true });
  }

  /** Compare with another text, or with nothing; `before` are the parameters behind that one, if not the same. */
  compare(old: readonly string[] | null, before = this.record.parameters): void {
    this.look.diff = old === null ? null : diffTexts(old, this.lines, new Sizes(before, this.record.parameters));
    this.head.changed(this.look.diff === null ? { text: '', told: '' } : summary(this.look.diff));
    this.sheet.redraw();
  }

  /** Lay the text out for the pane's size; to be called when that has changed. `size` where it has been measured. */
  layout(size = this.measure()): void {
    this.sheet.layout(size);
    this.drawMarks();
  }

  /** How much room there is. Asked of all panes before any is laid out: each change makes the next question slow. */
  measure(letter?: number): Size {
    return this.sheet.measure(letter);
  }

  redraw(): void {
    this.renew();
    this.layout();
  }

  instead(element: HTMLElement | null): void {
    (this.replaced ?? this.sheet.view).replaceWith(element ?? this.sheet.view);
    this.replaced = element;
    this.sheet.marks.hidden = element !== null;
    this.tip.hide();
    if (element === null) {
      this.layout();
    }
  }

  /** Light up lines; `reveal` scrolls to the row of a line, in this pane alone. */
  light(lines: readonly number[], reveal: number | null): void {
    this.look.lit = new Set(lines);
    if (reveal !== null) {
      this.sheet.reveal(reveal);
    }
    this.sheet.light();
    this.drawMarks();
  }

  /** How it is read now; to be asked while it stands in the page, for what is taken out forgets its scrolling. */
  get reading(): Reading {
    const { wrap, folds, scrolled: [top, left] } = this.sheet;
    return { wrap, current: this.current, folds, lines: this.lines.length, top, left, focused: this.hasFocus };
  }

  /** Be read as another pane of the same stage was, from the next layout on; folds stay where the text has as many lines. */
  readAs(other: Reading): void {
    this.sheet.wrap = other.wrap;
    this.look.current = Math.min(other.current, Math.max(0, this.lines.length - 1));
    this.sheet.folds = other.lines === this.lines.length ? [...other.folds] : this.sheet.folds;
    this.sheet.scrolled = [other.top, other.left];
  }

  /** Ask anew what others add to it; the next layout shows that. */
  renew(): void {
    const extras = this.host.extras;
    this.look.gutters = this.stage.pending ? [] : extras.flatMap(extra => extra.gutters?.(this) ?? []);
    this.buttons = [...extras.flatMap(extra => extra.buttons?.(this) ?? []), ...this.ownButtons()];
    this.head.showTotals(this.look.gutters);
    this.head.showButtons(this.buttons);
  }

  private ownButtons(): PaneButton[] {
    const command = (key: string) => (): void => void this.host.command(this, key);
    return [
      { text: '\u2315', name: 'search', key: '/', press: () => this.search.open() },
      { text: '\u21b5', name: 'wrap lines', key: 'w', press: () => this.toggleWrap() },
      { text: '\u2922', name: 'fill the bench', key: 'm', press: command('m') },
      { text: '\u00d7', name: 'close the pane', key: 'x', press: command('x') }
    ];
  }

  private listen(): void {
    const { view, sheet } = this.sheet;
    onKey(view, event => {
      if (!event.ctrlKey && !event.metaKey && !event.altKey && this.key(event.key)) {
        // A notebook has commands on the same keys; these are ours while a pane has the focus.
        event.preventDefault();
        event.stopPropagation();
      }
    });
    view.addEventListener('scroll', () => this.tip.hide(), { passive: true });
    sheet.addEventListener('pointerover', event => this.host.pointed(this, this.sheet.lineAt(event)));
    sheet.addEventListener('pointerleave', () => this.host.pointed(this, null));
    sheet.addEventListener('click', event => {
      const line = this.sheet.lineAt(event);
      if (line !== null) {
        this.clicked(line, event.target);
      }
    });
  }

  /** Choose a line, or fold it where the pointer is on what folds. */
  clicked(line: number, place: EventTarget | null): void {
    if (this.sheet.foldsAt(place) && this.toggleFold(line)) {
      return;
    }
    this.go(line, false);
    this.host.pinned(this, line);
  }

  private key(key: string): boolean {
    const [now, last] = [this.current, this.lines.length - 1];
    const to = { ArrowDown: now + 1, ArrowUp: now - 1, PageDown: now + this.height, PageUp: now - this.height, Home: 0, End: last }[key];
    this.tip.hide();
    if (to !== undefined) {
      this.go(this.sheet.stepTo(now, Math.min(last, Math.max(0, to))));
      return true;
    }
    switch (key) {
      case 'Enter':
        this.host.pinned(this, now);
        return true;
      case 'z':
        return this.toggleFold(now);
      case 'i':
        return this.tell();
      case 'n':
      case 'N':
        this.search.step(key === 'n' ? 1 : -1);
        return true;
      default:
        return this.press(key);
    }
  }

  private press(key: string): boolean {
    const button = this.buttons.find(each => each.key === key);
    button?.press();
    return button !== undefined || this.host.command(this, key);
  }

  private tell(): boolean {
    this.sheet.reveal(this.current);
    if (!this.tip.tell(this.sheet.rowElements(this.current))) {
      this.host.say('Nothing is known of this line beyond its text.');
    }
    return true;
  }

  private toggleWrap(): void {
    this.sheet.wrap = !this.sheet.wrap;
    this.layout();
  }

  private toggleFold(line: number): boolean {
    const done = this.sheet.toggleFold(line);
    this.drawMarks();
    return done;
  }

  private go(line: number, reveal = true): void {
    this.look.current = line;
    if (reveal) {
      this.sheet.reveal(line, false);
    }
    this.sheet.redraw();
    this.host.pointed(this, line);
  }

  private found(line: number | null): void {
    this.look.wanted = this.search.input.value;
    if (line !== null) {
      this.look.current = line;
      this.sheet.reveal(line);
    }
    this.sheet.redraw();
    this.drawMarks();
  }

  private searched(): void {
    this.look.wanted = '';
    this.focus();
    this.sheet.redraw();
    this.drawMarks();
  }

  private drawMarks(): void {
    this.sheet.mark([['tbx-mark-lit', this.look.lit], ['tbx-mark-hit', this.search.hits]]);
  }
}
