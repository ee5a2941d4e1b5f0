/** What is said of the place under the pointer, beside it; by the keyboard all that is said of a line. */

import { elementOf, make } from '../../dom';

export class Tip {
  readonly element = make('div', { class: 'tbx-tip', role: 'status', hidden: '' });
  private place: Element | null = null;
  /** Where the pointer was last: rows that are drawn anew under a resting one are no wish to be told of them. */
  private spot = '';

  /** `area` is what holds places with `data-says`, and `frame` what the tip must stay within. */
  constructor(area: HTMLElement, private readonly frame: () => HTMLElement) {
    area.addEventListener('pointermove', event => (this.spot = `${event.clientX} ${event.clientY}`));
    area.addEventListener('pointerover', event => {
      if (this.spot === `${event.clientX} ${event.clientY}`) {
        return;
      }
      const place = elementOf(event.target)?.closest<HTMLElement>('[data-says]') ?? null;
      if (place === null) {
        this.hide();
      } else if (place !== this.place) {
        this.show(place, place.dataset['says'] ?? '');
      }
    });
    area.addEventListener('pointerleave', () => this.hide());
  }

  /** All that is said of what stands in the rows of a line, the longest first; whether there is anything. */
  tell(rows: readonly HTMLElement[]): boolean {
    const places = rows.flatMap(row => [...row.querySelectorAll<HTMLElement>('[data-says]')]);
    const told = [...new Set(places.map(place => place.dataset['says'] ?? ''))].filter(Boolean).map(says => says.split('\n'));
    const text = told.sort((a, b) => b.length - a.length).map(lines => lines.join('\n\u2003')).join('\n');
    if (text !== '') {
      this.show(rows[rows.length - 1]!, text);
    }
    return text !== '';
  }

  hide(): void {
    this.place = null;
    this.element.hidden = true;
  }

  private show(place: HTMLElement, text: string): void {
    if (text === '') {
      this.hide();
      return;
    }
    this.place = place;
    this.element.textContent = text;
    this.element.hidden = false;
    const [frame, box] = [this.frame().getBoundingClientRect(), place.getBoundingClientRect()];
    const { offsetWidth, offsetHeight } = this.element;
    const left = Math.max(4, Math.min(box.left - frame.left, frame.width - offsetWidth - 8));
    const below = box.bottom - frame.top + 3;
    const top = below + offsetHeight > frame.height ? Math.max(0, box.top - frame.top - offsetHeight - 3) : below;
    this.element.style.left = `${left}px`;
    this.element.style.top = `${top}px`;
  }
}
