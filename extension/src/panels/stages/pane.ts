/** One stage's text as a list of lines that can be walked with the keyboard. */

import { freshId, make } from '../../dom';
import { colour } from '../../highlight';
import { StageRecord } from '../../record';

/** Lines in one block that the browser may leave undrawn, and that is coloured when it comes near. */
const BLOCK = 100;

export class Pane {
  readonly element: HTMLElement;
  private readonly list: HTMLElement;
  private readonly lines: HTMLElement[] = [];
  private readonly observer: IntersectionObserver;
  private current = -1;
  private marked: HTMLElement[] = [];

  /** `moved` is called with the line (from 0) that became current, or -1 when the pointer left. */
  constructor(
    readonly stage: StageRecord,
    private readonly moved: (at: number) => void
  ) {
    const label = freshId('tb-stage');
    this.list = make('div', { class: 'tb-lines', role: 'listbox', tabindex: '0', 'aria-labelledby': label });
    this.element = make('section', { class: 'tb-pane', 'data-stage': stage.name }, this.header(label), this.list);
    this.observer = new IntersectionObserver(seen => seen.forEach(each => this.colourBlock(each)), {
      root: this.list,
      rootMargin: '300px'
    });
    this.fill();
    this.list.addEventListener('keydown', event => this.key(event));
    this.list.addEventListener('pointerover', event => this.moved(this.lineOf(event.target)));
    this.list.addEventListener('pointerleave', () => this.moved(this.current));
    this.list.addEventListener('click', event => this.go(this.lineOf(event.target)));
  }

  /** Mark lines (from 0), and bring the first into view inside this pane; the page never scrolls. */
  mark(lines: readonly number[], scroll: boolean): void {
    this.marked.forEach(line => line.classList.remove('tb-linked'));
    this.marked = lines.flatMap(at => this.lines[at] ?? []);
    this.marked.forEach(line => line.classList.add('tb-linked'));
    const first = this.marked[0];
    if (scroll && first !== undefined) {
      this.reveal(first);
    }
  }

  dispose(): void {
    this.observer.disconnect();
  }

  private header(label: string): HTMLElement {
    const ms = (this.stage.seconds * 1000).toFixed(this.stage.seconds < 0.01 ? 2 : 0);
    const note = this.stage.pending ? 'in the making' : `${ms} ms`;
    return make('header', {}, make('span', { id: label }, this.stage.name), make('span', { class: 'tb-note' }, note));
  }

  private fill(): void {
    const texts = this.stage.text.replace(/\n$/, '').split('\n');
    for (let start = 0; start < texts.length; start += BLOCK) {
      const part = texts.slice(start, start + BLOCK);
      const block = make('div', { class: 'tb-block', role: 'presentation', 'data-start': String(start) });
      block.style.setProperty('--tb-count', String(part.length));
      part.forEach((text, at) => {
        const attributes = { id: freshId('tb-line'), class: 'tb-line', role: 'option', 'data-line': String(start + at) };
        const line = make('div', attributes, text === '' ? ' ' : text);
        this.lines.push(line);
        block.append(line);
      });
      this.list.append(block);
      this.observer.observe(block);
    }
  }

  private colourBlock(seen: IntersectionObserverEntry): void {
    if (seen.isIntersecting) {
      this.observer.unobserve(seen.target);
      for (const line of seen.target.children) {
        colour(line as HTMLElement, line.textContent ?? '', this.stage.language);
      }
    }
  }

  private lineOf(target: EventTarget | null): number {
    const line = target instanceof Element ? target.closest<HTMLElement>('.tb-line') : null;
    return line === null ? -1 : Number(line.dataset['line']);
  }

  private key(event: KeyboardEvent): void {
    const page = Math.max(1, Math.floor(this.list.clientHeight / (this.lines[0]?.offsetHeight || 16)) - 1);
    const last = this.lines.length - 1;
    const now = this.current;
    const next = {
      ArrowDown: now + 1,
      ArrowUp: now - 1,
      PageDown: now + page,
      PageUp: now - page,
      Home: 0,
      End: last
    }[event.key];
    if (next !== undefined) {
      event.preventDefault();
      event.stopPropagation();
      this.go(Math.min(last, Math.max(0, next)));
    }
  }

  private go(at: number): void {
    const line = this.lines[at];
    if (line === undefined) {
      return;
    }
    this.lines[this.current]?.setAttribute('aria-selected', 'false');
    line.setAttribute('aria-selected', 'true');
    this.list.setAttribute('aria-activedescendant', line.id);
    this.current = at;
    this.reveal(line);
    this.moved(at);
  }

  private reveal(line: HTMLElement): void {
    // Not offsetTop: a block with `content-visibility` is the offset parent of its lines.
    const [box, own] = [this.list.getBoundingClientRect(), line.getBoundingClientRect()];
    if (own.top < box.top || own.bottom > box.bottom) {
      this.list.scrollTop += own.top - box.top - this.list.clientHeight / 3;
    }
  }
}
