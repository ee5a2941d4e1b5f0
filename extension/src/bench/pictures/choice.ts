/** A list to choose from inside a tab, with what belongs to the chosen one below it. */

import { button, make } from '../../dom';
import { Block, ChoiceBlock } from '../state';
import { Kept } from './kept';

/** `draw` makes the elements of a block. */
export function choiceElement(choice: ChoiceBlock, kept: Kept, draw: (block: Block) => HTMLElement[]): HTMLElement {
  const select = make('select', { class: 'tbx-choose', 'aria-label': choice.label });
  select.append(...choice.options.map((option, at) => make('option', { value: String(at) }, option.name)));
  const body = make('div', { class: 'tbx-chosen' });
  // By its beginning, too: a name says sizes, and these are what sliders change.
  const wanted = kept.chosen.get(choice.key) ?? '';
  const exact = choice.options.findIndex(option => option.name === wanted);
  const alike = choice.options.findIndex(option => wanted !== '' && stem(option.name) === stem(wanted));
  const show = (at: number): void => {
    body.replaceChildren(...(choice.options[at]?.blocks ?? []).flatMap(draw));
  };
  const first = Math.max(0, exact >= 0 ? exact : alike);
  select.value = String(first);
  select.addEventListener('change', () => {
    const at = Number(select.value);
    kept.chosen.set(choice.key, choice.options[at]?.name ?? '');
    show(at);
  });
  show(first);
  const label = make('div', { class: 'tbx-choice' }, make('span', { 'aria-hidden': 'true' }, choice.label), select);
  return make('div', {}, label, body);
}

/** What a name begins with: up to its sizes and counts. */
function stem(name: string): string {
  return name.split(/ \u2013 |, /)[0] ?? name;
}

/** A row of buttons of which one is pressed, kept by `key`. */
export function pressed(kept: Kept, key: string, label: string, names: readonly string[], changed: (name: string) => void): HTMLElement {
  const group = make('span', { class: 'tbx-pressed', role: 'group', 'aria-label': label }, `${label} `);
  const buttons = names.map(name => {
    return button(name, '', () => {
      kept.chosen.set(key, name);
      mark();
      changed(name);
    });
  });
  const mark = (): void => {
    const now = kept.chosen.get(key) ?? names[0];
    buttons.forEach(button => button.setAttribute('aria-pressed', String(button.textContent === now)));
  };
  mark();
  group.append(...buttons);
  return group;
}
