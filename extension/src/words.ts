/** The words of the tile language, as the language itself tells them: for hovering, completing and marking. */

import table from './words.json';

/** One name: its signature, its first line, where its tests are right, and what targets have for it. */
export interface Word {
  readonly name: string;
  readonly signature: string;
  readonly line: string;
  readonly roads: readonly string[] | null;
  readonly notes: readonly string[];
}

const words = table.words as unknown as Readonly<Record<string, readonly [string, string]>>;
const known = table.facts as unknown as Readonly<Record<string, readonly [number, readonly string[]]>>;
const later = table.later as Readonly<Record<string, string>>;

/** The word of that name, without its `T.`; null for a name that is none. */
export function wordOf(name: string): Word | null {
  const row = Object.hasOwn(words, name) ? words[name] : undefined;
  if (row === undefined) {
    return null;
  }
  const [signature, line] = row;
  const [bits, notes] = (Object.hasOwn(known, name) ? known[name] : undefined) ?? [-1, []];
  const roads = bits < 0 ? null : table.roads.filter((_, at) => (bits >> at) & 1);
  return { name, signature, line, roads, notes };
}

/** The most letters of a signature that a list of completions has room for. */
const ROOM = 56;

/** A signature in few letters: its parameters by their names, without those that have a value if there are many. */
export function shortSignature(signature: string): string {
  if (!signature.startsWith('(')) {
    return '';
  }
  const names: string[] = [];
  let [depth, part] = [0, ''];
  for (const letter of signature.slice(1)) {
    if (depth === 0 && (letter === ',' || letter === ')')) {
      names.push(part.trim());
      part = '';
      if (letter === ')') {
        break;
      }
      continue;
    }
    depth += '([{'.includes(letter) ? 1 : ')]}'.includes(letter) ? -1 : 0;
    part += letter;
  }
  const plain = names.filter(name => name !== '' && name !== '*').map(name => [/^\**\w+/.exec(name)?.[0] ?? name, name.includes(' = ')] as const);
  const whole = `(${plain.map(([name]) => name).join(', ')})`;
  const needed = plain.filter(([, given]) => !given).map(([name]) => name);
  return whole.length <= ROOM ? whole : `(${[...needed, '\u2026'].join(', ')})`;
}

/** Every name that completion offers. */
export function offered(): string[] {
  return Object.keys(words).filter(name => !name.startsWith('_'));
}

/** What is to be said of a name that is no word. */
export function missing(name: string): string {
  const told = Object.hasOwn(later, name) ? later[name] : undefined;
  if (told !== undefined) {
    return told;
  }
  const close = nearest(name, offered());
  return `there is no T.${name}${close === null ? '' : `; did you mean T.${close}?`}`;
}

/** How many letters two names differ in: put in, left out, changed, or two exchanged. */
function distance(a: string, b: string): number {
  let [old, row] = [[] as number[], Array.from({ length: b.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let least = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        least = Math.min(least, old[j - 2]! + 1);
      }
      next.push(least);
    }
    [old, row] = [row, next];
  }
  return row[b.length]!;
}

/** The known name closest to one in spelling, upper and lower case alike; null where none is near. */
export function nearest(name: string, known: readonly string[]): string | null {
  const most = Math.max(1, Math.floor(name.length * 0.4));
  let [best, least] = [null as string | null, most + 1];
  for (const other of known) {
    const found = distance(name.toLowerCase(), other.toLowerCase());
    if (found < least) {
      [best, least] = [other, found];
    }
  }
  return best;
}

/** The options of the magic: what stands behind each, and what it does. */
export const OPTIONS = table.options as unknown as Readonly<Record<string, readonly [string, string]>>;
