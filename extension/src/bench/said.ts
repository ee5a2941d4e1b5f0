/** What is said of the names and words of a stage: of a name that its text defines, of a word, of an argument. */

import table from '../stage_words.json';
import { PaneExtra, PaneView, Token } from './pane/door';

const words = new Map(Object.entries(table.words).flatMap(([line, names]) => names.split(' ').map(name => [name, line] as const)));
const args = table.arguments as Readonly<Record<string, string>>;

function own(rows: Readonly<Record<string, string>>, name: string): string {
  return Object.hasOwn(rows, name) ? rows[name]! : '';
}

/** What is said of a token of a stage of tiles or of one thread; other languages have no such words. */
export function saidOf(pane: PaneView, token: Token): string {
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
  return named === '' ? '' : `${token.text}: ${named}`;
}

export const SAID: PaneExtra = { explains: (pane, _, token) => saidOf(pane, token) };
