/** What is said of a word of the language or an option of the magic, as an element. */

import { make } from '../dom';
import { OPTIONS, Word } from '../words';

/** Backquotes of a docstring as code. */
function prose(text: string): Node[] {
  return text.split('`').map((part, at) => (at % 2 === 1 ? make('code', {}, part) : document.createTextNode(part)));
}

/** A word: its signature, its line, what targets have for it, where it is tested. */
export function wordTold(word: Word): HTMLElement {
  const rows = word.notes.map(note => make('li', {}, note));
  if (word.roads !== null) {
    rows.push(make('li', {}, `tested on ${word.roads.join(', ')}`));
  }
  const head = make('code', { class: 'tb-told-head' }, `T.${word.name}${word.signature}`);
  return make('div', { class: 'tb-told' }, head, make('p', {}, ...prose(word.line)), ...(rows.length > 0 ? [make('ul', {}, ...rows)] : []));
}

/** An option: its form and what it does; null for one that there is not. */
export function optionTold(name: string): HTMLElement | null {
  const row = Object.hasOwn(OPTIONS, name) ? OPTIONS[name] : undefined;
  if (row === undefined) {
    return null;
  }
  const [form, what] = row;
  return make('div', { class: 'tb-told' }, make('code', { class: 'tb-told-head' }, `${name} ${form}`.trim()), make('p', {}, ...prose(what)));
}
