/** The choice of what texts are compared with: the bench's own past, pinned compilations, other targets; and the pins. */

import { button, make, onKey } from '../dom';
import { Ask } from './data';
import { BenchState } from './state';

/** What the bench knows by itself; `other` is what the kernel's side was asked for. */
export type Against = 'before' | 'last' | 'other' | 'nothing';

const OWN: readonly [Against, string][] = [['before', 'the stage before'], ['last', 'the position before'], ['nothing', 'nothing']];

export class AgainstChoice {
  readonly elements: readonly HTMLElement[];
  private readonly select = make('select', { 'aria-label': 'compared with', class: 'tbx-against' });
  private readonly pin: HTMLElement;
  private readonly name = make('input', {
    type: 'text', class: 'tbx-pin-name', 'aria-label': 'name of the pin', placeholder: 'name (or none)', hidden: '', 'data-lm-suppress-shortcuts': 'true'
  });
  private own: Against = 'before';
  private listed = '';

  /** `chosen` is called with a choice that the bench answers by itself. */
  constructor(private readonly ask: (what: Ask) => void, private readonly chosen: (own: Against) => void) {
    this.pin = button('Pin', 'keep this compilation under a name, to compare others with', () => this.naming(true));
    this.select.addEventListener('change', () => this.changed());
    onKey(this.name, event => {
      event.stopPropagation();
      if (event.key === 'Enter' || event.key === 'Escape') {
        event.preventDefault();
        if (event.key === 'Enter') {
          this.ask({ kind: 'pin', name: this.name.value });
        }
        this.naming(false);
        this.pin.focus();
      }
    });
    this.name.addEventListener('blur', () => this.naming(false));
    this.elements = [make('span', { class: 'tbx-quiet tbx-gap' }, 'compared with'), this.select, this.pin, this.name];
  }

  /** What is compared with now. */
  show(state: BenchState): Against {
    const { compared, pins, targets, target, live } = state;
    const others = live ? targets.filter(each => each !== target || compared?.name === each) : [];
    const listed = JSON.stringify([pins, others]);
    if (listed !== this.listed) {
      this.listed = listed;
      const own = OWN.map(([value, text]) => make('option', { value }, text));
      this.select.replaceChildren(...own, ...group('pinned', 'pin', pins), ...group('this position for', 'target', others));
    }
    this.pin.hidden = !live || !this.name.hidden;
    this.select.value = compared === null ? this.own : `${compared.kind} ${compared.name}`;
    return compared === null ? this.own : 'other';
  }

  private changed(): void {
    const [what, ...rest] = this.select.value.split(' ');
    if (what === 'pin' || what === 'target') {
      this.ask({ kind: 'compare', what, name: rest.join(' ') });
      return;
    }
    this.own = this.select.value as Against;
    this.ask({ kind: 'compare', what: '', name: '' });
    this.chosen(this.own);
  }

  private naming(on: boolean): void {
    this.name.hidden = !on;
    this.pin.hidden = on;
    if (on) {
      this.name.value = '';
      this.name.focus();
    }
  }
}

function group(label: string, kind: string, names: readonly string[]): HTMLElement[] {
  return names.length === 0 ? [] : [make('optgroup', { label }, ...names.map(name => make('option', { value: `${kind} ${name}` }, name)))];
}
