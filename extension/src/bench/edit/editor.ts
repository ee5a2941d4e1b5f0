/**
 * An editor of one stage's text: a plain text field over coloured lines, with numbers, and what is wrong below it.
 *
 * An editor library would be the larger part of the script that every saved bench carries; what is needed here is typing,
 * undoing, and a line with carets.
 */

import { button, focusedNear, freshId, make, onKey } from '../../dom';
import { ROW } from '../pane/row';
import { ProblemData } from '../state';
import { Backdrop } from './backdrop';

export interface EditorHost {
  /** Compile on from this text. */
  compile(stage: string, text: string): void;
  /** Go back to what the compiler makes. */
  revert(stage: string): void;
  closed(stage: string): void;
}

export class Editor {
  readonly element: HTMLElement;
  private readonly area: HTMLTextAreaElement;
  private readonly back: Backdrop;
  private readonly scroll = make('div', { class: 'tbx-edit-scroll' });
  private readonly stack: HTMLElement;
  private readonly said = make('span', { class: 'tbx-quiet', role: 'status' });
  private readonly take: HTMLElement;
  private readonly revert: HTMLElement;
  private readonly problem = make('div', { class: 'tbx-problem tbx-edit-problem', role: 'alert', hidden: '' });
  /** What was written when this was begun or last compiled; how the stage prints now; what is being compiled. */
  private base: string;
  private now: string;
  private sent: string | null = null;
  /** Whether the stage has become another one while something was written. */
  private other = false;

  constructor(readonly stage: string, language: string, text: string, private readonly host: EditorHost) {
    this.base = this.now = text;
    this.back = new Backdrop(language);
    const id = freshId('tbx-edit');
    this.problem.id = id;
    this.area = make('textarea', {
      class: 'tbx-edit-area', spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off', wrap: 'off',
      'aria-label': `text of the stage ${stage}`, 'aria-describedby': id
    });
    this.area.value = text;
    this.stack = make('div', { class: 'tbx-edit-stack' }, this.back.element, this.area);
    this.scroll.append(this.back.numbers, this.stack);
    this.take = button('Take the new text', 'drop what is written here for the text of this position', () => this.follow());
    this.revert = button('Revert', "go back to the compiler's text", () => this.host.revert(stage));
    const compile = button('Compile on', 'compile the later stages from this text (Ctrl+Enter)', () => this.compile());
    const close = button('Close', 'show the stage again; what is written is kept (Escape)', () => this.host.closed(stage));
    this.element = make(
      // Lumino's keys act before an element hears of them: Ctrl+Enter would run the cell.
      'div', { class: 'tbx-editor', 'data-lm-suppress-shortcuts': 'true' },
      make('div', { class: 'tbx-edit-bar', role: 'toolbar', 'aria-label': `editing ${stage}` }, compile, this.revert, close, this.take, this.said),
      this.scroll, this.problem
    );
    this.take.hidden = true;
    this.listen();
    this.draw();
  }

  get text(): string {
    return this.area.value;
  }

  /** Whether something is written that no compilation has. */
  get unsaved(): boolean {
    return this.area.value !== this.base;
  }

  get hasFocus(): boolean {
    return focusedNear(this.area) === this.area;
  }

  focus(line = 0): void {
    this.area.focus({ preventScroll: true });
    if (line > 0) {
      const start = this.area.value.split('\n').slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
      this.area.setSelectionRange(start, start);
      this.scroll.scrollTop = Math.max(0, (line - 1) * ROW - this.scroll.clientHeight / 3);
    }
  }

  /** Take up what was written before. */
  write(text: string): void {
    this.area.value = text;
    this.other = text !== this.now;
    this.draw();
    this.tell();
  }

  /** Where it is read; to be asked while it stands in the page. */
  get place(): readonly [number, number, boolean] {
    return [this.scroll.scrollTop, this.scroll.scrollLeft, this.hasFocus];
  }

  moveTo([top, left, focused]: readonly [number, number, boolean]): void {
    [this.scroll.scrollTop, this.scroll.scrollLeft] = [top, left];
    if (focused) {
      this.area.focus({ preventScroll: true });
    }
  }

  /** The stage's text of now, what is wrong with the one written, if anything is, and whether all is answered. */
  show(text: string, edited: boolean, problem: ProblemData | null, done: boolean): void {
    this.revert.hidden = !edited && problem === null;
    if (this.sent !== null && problem === null && (text !== this.now || done)) {
      // What is written stays as it is, though the stage prints without its comments.
      [this.base, this.now, this.sent, this.other] = [this.sent, text, null, false];
    } else if (text !== this.now) {
      this.now = text;
      this.other = this.unsaved && text !== this.area.value;
      if (!this.other) {
        this.follow();
      }
    }
    if (problem !== null && done) {
      this.sent = null;
    }
    this.showProblem(problem);
    this.tell();
  }

  private showProblem(problem: ProblemData | null): void {
    const same = problem !== null && this.problem.dataset['said'] === problem.what + problem.text;
    this.problem.hidden = problem === null;
    if (problem === null || same) {
      this.problem.dataset['said'] = '';
      this.back.mark(problem);
      return;
    }
    this.problem.dataset['said'] = problem.what + problem.text;
    const go = button(`line ${problem.line}`, 'go to the line', () => this.focus(problem.line));
    this.problem.replaceChildren(make('strong', {}, problem.what), ' ', go, make('pre', {}, problem.text));
    this.back.mark(problem);
    if (this.hasFocus) {
      this.scroll.scrollTop = Math.max(0, (problem.line - 1) * ROW - this.scroll.clientHeight / 3);
    }
  }

  private follow(): void {
    this.other = false;
    this.base = this.now;
    this.area.value = this.now;
    this.draw();
    this.tell();
  }

  private tell(): void {
    this.take.hidden = !this.other;
    this.said.textContent = this.other
      ? 'The stage reads otherwise by now: this text was written before.'
      : this.sent !== null ? 'compiling \u2026'
        : this.unsaved ? 'changed; Ctrl+Enter compiles on from here' : '';
  }

  private compile(): void {
    this.sent = this.area.value;
    this.tell();
    this.host.compile(this.stage, this.area.value);
  }

  private listen(): void {
    this.area.addEventListener('input', () => {
      this.back.mark(null);
      this.draw();
      this.tell();
    });
    onKey(this.element, event => {
      event.stopPropagation();
      if (event.key === 'Escape') {
        event.preventDefault();
        this.host.closed(this.stage);
      } else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        this.compile();
      } else if (event.key === 'Enter' && event.target === this.area && !event.shiftKey && !event.altKey) {
        this.newLine(event);
      }
    });
  }

  /** A new line begins as far in as the one before it. */
  private newLine(event: KeyboardEvent): void {
    const before = this.area.value.slice(0, this.area.selectionStart);
    const indent = /^[ \t]*/.exec(before.slice(before.lastIndexOf('\n') + 1))?.[0] ?? '';
    if (indent !== '') {
      event.preventDefault();
      // The one way in which a browser remembers what to undo.
      this.area.ownerDocument.execCommand('insertText', false, `\n${indent}`);
    }
  }

  private draw(): void {
    const lines = this.area.value.split('\n');
    const longest = this.back.show(lines);
    this.stack.style.height = `${lines.length * ROW}px`;
    this.stack.style.width = `max(100%, ${longest + 3}ch)`;
  }
}
