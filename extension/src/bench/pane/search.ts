/** Search in a pane: the field of its header, the lines that were found, the steps between them. */

import { make, onKey } from '../../dom';

export class Search {
  readonly input: HTMLInputElement;
  readonly found = make('span', { class: 'tbx-found', role: 'status' });
  hits: readonly number[] = [];

  /** `moved` is called with the line to go to, or null where only the hits have changed; `ended` when it is over. */
  constructor(
    name: string,
    private readonly lines: readonly string[],
    private readonly now: () => number,
    private readonly moved: (line: number | null) => void,
    private readonly ended: () => void
  ) {
    this.input = make('input', { class: 'tbx-search', type: 'search', 'aria-label': `search ${name}`, hidden: '' });
    this.input.addEventListener('input', () => this.find());
    onKey(this.input, event => {
      event.stopPropagation();
      if (event.key === 'Enter') {
        this.step(event.shiftKey ? -1 : 1);
      } else if (event.key === 'Escape') {
        this.end();
      }
    });
  }

  open(): void {
    this.input.hidden = false;
    this.input.focus();
    this.input.select();
  }

  /** To the next hit, or the one before, round the text; 0 stays where the line of now is one. */
  step(by: -1 | 0 | 1): void {
    const count = this.hits.length;
    if (count === 0) {
      this.found.textContent = this.input.value === '' ? '' : 'none';
      this.moved(null);
      return;
    }
    const now = this.now();
    const behind = this.hits.findIndex(line => (by === 0 ? line >= now : line > now));
    const before = this.hits.filter(line => line < now).length - 1;
    const next = by < 0 ? (before + count) % count : Math.max(0, behind);
    this.found.textContent = `${next + 1}/${count}`;
    this.moved(this.hits[next]!);
  }

  private find(): void {
    const wanted = this.input.value.toLowerCase();
    this.hits = wanted === '' ? [] : this.lines.flatMap((line, at) => (line.toLowerCase().includes(wanted) ? [at] : []));
    this.step(0);
  }

  private end(): void {
    this.input.value = '';
    this.input.hidden = true;
    this.found.textContent = '';
    this.hits = [];
    this.ended();
  }
}
