/** A text as rows of one height: lines that are too long are cut at tokens, folded ones are left out. */

/** A piece of a line (from 0) as it stands on one row: characters `start` to `end`, indented by `indent`. */
export interface Row {
  readonly line: number;
  readonly start: number;
  readonly end: number;
  /** Whether it is the first row of its line. */
  readonly first: boolean;
  readonly indent: number;
  /** How many lines are folded away here; 0 for a row of text. */
  readonly folded: number;
}

/** Lines `from` to `to` (exclusive) that a person may fold, and what is said in their place. */
export interface Fold {
  readonly from: number;
  readonly to: number;
  readonly says: string;
}

/** Where a line may be cut, the best first: behind a blank, behind an opening bracket, behind another sign. */
const BREAKS = [/[\s]/, /[([{]/, /[,;=+*/|&)\]}.]/];

/** Letters of a word with its bracket: `T.alloc_shared((`. */
const WORD_ROOM = 16;

/** Where to cut `line` so that no piece is longer than `columns`: at a token in its last half, else anywhere. */
function cuts(line: string, columns: number, indent: number, from: number): number[] {
  const out: number[] = [];
  let start = from;
  let room = columns;
  while (line.length - start > room) {
    let end = 0;
    for (const sign of BREAKS) {
      const least = start + room / 2;
      let at = start + room;
      while (at > least && !sign.test(line[at - 1]!)) {
        at -= 1;
      }
      if (at > least && line.slice(start, at).trim() !== '') {
        end = at;
        break;
      }
    }
    end = end || start + room;
    out.push(end);
    start = end;
    room = columns - indent;
  }
  return out;
}

/** The rows of a text. `columns` is where lines are cut, 0 for nowhere. */
export function rowsOf(lines: readonly string[], columns: number, folds: readonly Fold[]): Row[] {
  const out: Row[] = [];
  const closed = new Map(folds.map(fold => [fold.from, fold]));
  for (let line = 0; line < lines.length; line += 1) {
    const fold = closed.get(line);
    if (fold !== undefined) {
      out.push({ line, start: 0, end: 0, first: true, indent: 0, folded: fold.to - fold.from });
      line = fold.to - 1;
      continue;
    }
    const text = lines[line]!;
    const own = text.length - text.trimStart().length;
    const long = columns > 0 && text.length > columns;
    // Beside an indentation of more than half a row only syllables fit: it is shown as half a row.
    let start = long ? Math.max(0, own - Math.floor(columns / 2)) : 0;
    // The rest of a line stands deeper than its beginning, as long as a word of the language has room there.
    const deeper = Math.min(own - start + 2, columns - WORD_ROOM);
    const indent = Math.min(own - start + 4, Math.max(Math.floor(columns / 3), deeper));
    let first = true;
    for (const end of [...(long ? cuts(text, columns, indent, start) : []), text.length]) {
      out.push({ line, start, end, first, indent: first ? 0 : indent, folded: 0 });
      [start, first] = [end, false];
    }
  }
  return out;
}

/**
 * What is folded at first. In the text that a target emits that is everything before the kernel: the longest
 * run of lines at the start that comes from no line of the user's, when it is longer than a screen's half.
 */
export function firstFolds(count: number, hasOrigin: (line: number) => boolean, emitted: boolean): Fold[] {
  if (!emitted) {
    return [];
  }
  let to = 0;
  while (to < count && !hasOrigin(to)) {
    to += 1;
  }
  return to > 12 && to < count ? [{ from: 0, to, says: 'in front of the kernel' }] : [];
}

/** The definitions at the head of a stage, where they are more than a few: who reads the program points at a name. */
export function definitionsFold(lines: readonly string[], names: readonly string[]): Fold[] {
  const from = lines.findIndex(line => names.some(name => line.startsWith(`    ${name} = `)));
  return from >= 0 && names.length > 2 ? [{ from, to: from + names.length, says: 'that define layouts and mappings' }] : [];
}

/** Blocks by indentation that a reader may fold: a line that ends in a colon or brace and what is deeper. */
export function foldAt(lines: readonly string[], at: number): Fold | null {
  const text = lines[at];
  if (text === undefined || !/[:{]\s*(?:#.*|\/\/.*)?$/.test(text)) {
    return null;
  }
  const depth = text.length - text.trimStart().length;
  let to = at + 1;
  while (to < lines.length) {
    const line = lines[to]!;
    if (line.trim() !== '' && line.length - line.trimStart().length <= depth) {
      break;
    }
    to += 1;
  }
  return to - at > 2 ? { from: at + 1, to, says: '' } : null;
}
