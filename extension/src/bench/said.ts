/** What is said of the names and words of a stage: of a layout that its text defines, of a word, an argument, a name. */

import table from '../stage_words.json';
import { PaneExtra, PaneView, Token } from './pane/door';
import { Binding, bindings, boundAt } from './text/bound';

const words = new Map(Object.entries(table.words).flatMap(([line, names]) => names.split(' ').map(name => [name, line] as const)));
const args = table.arguments as Readonly<Record<string, string>>;
/** The names of a text, found when the first of them is asked for. */
const known = new WeakMap<readonly string[], ReadonlyMap<string, readonly Binding[]>>();

function own(rows: Readonly<Record<string, string>>, name: string): string {
  return Object.hasOwn(rows, name) ? rows[name]! : '';
}

function bound(pane: PaneView, name: string, line: number): string {
  let found = known.get(pane.lines);
  if (found === undefined) {
    known.set(pane.lines, (found = bindings(pane.lines)));
  }
  const binding = boundAt(found, name, line);
  return binding === null ? '' : `line ${binding.line + 1}: ${binding.text}`;
}

/** What is said of a token of a stage of tiles or of one thread; other languages have no such words. */
export function saidOf(pane: PaneView, line: number, token: Token): string {
  if (pane.stage.language !== 'tile-ir') {
    return '';
  }
  if (token.kind === 'argument') {
    const said = own(args, token.text);
    return said === '' ? '' : `${token.text}=: ${said}`;
  }
  if (token.text.startsWith('T.')) {
    return words.get(token.text.slice(2)) ?? '';
  }
  const named = own(pane.stage.names, token.text);
  return named === '' ? bound(pane, token.text, line) : `${token.text}: ${named}`;
}

export const SAID: PaneExtra = { explains: (pane, line, token) => saidOf(pane, line, token) };
