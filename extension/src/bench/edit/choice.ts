/** The list of a bench's edits: what the compiler makes, and each edit with the position that it goes back to. */

import { make } from '../../dom';
import { Ask } from '../data';
import { EditsData } from '../state';

/** Label and list, where anything was edited. */
export function editChoice(edits: EditsData, ask: (what: Ask) => void): HTMLElement[] {
  if (edits.kept.length === 0) {
    return [];
  }
  const options = edits.kept.map(each => {
    const text = each.position === '' ? each.label : `${each.label} at ${each.position}`;
    return make('option', { value: String(each.number) }, text);
  });
  const select = make('select', { 'aria-label': 'edited texts', class: 'tbx-edit-choice' }, make('option', { value: '' }, 'what the compiler makes'), ...options);
  select.value = String(edits.kept.find(each => each.here)?.number ?? '');
  select.classList.toggle('tbx-edited', select.value !== '');
  select.addEventListener('change', () => {
    ask(select.value === '' ? { kind: 'revert', stage: '' } : { kind: 'edited', number: Number(select.value) });
  });
  return [make('span', { class: 'tbx-quiet tbx-gap' }, 'edits'), select];
}
