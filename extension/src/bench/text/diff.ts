/**
 * What changed between two texts, line by line and word by word: the same rules as `workbench/diff.py`, so that
 * every form of a bench says the same of two stages.
 */

import { Sizes } from './sizes';

/**
 * How a line of the new text stands to the old one; `spans` are the character ranges that are new in it, `sizes` those that
 * only follow from sizes. A `sized` line has no others.
 */
export interface LineChange {
  readonly kind: 'same' | 'sized' | 'changed' | 'new';
  readonly spans: readonly (readonly [number, number])[];
  readonly sizes: readonly (readonly [number, number])[];
  readonly removed: readonly string[];
}

export interface TextDiff {
  readonly lines: readonly LineChange[];
  readonly removedAtEnd: readonly string[];
}

const WORD = /[^\W\d]\w*(?:\.\w+)*|0[xX][0-9a-fA-F]+|\d+(?:\.\d+)?|\s+|[^\w\s]/gu;
/** A line is a changed form of another when they are at least so alike. */
const ALIKE = 0.5;
const MOST_PAIRS = 40_000;
const SAME: LineChange = { kind: 'same', spans: [], sizes: [], removed: [] };
const NO_SIZES = new Sizes({}, {});

function words(line: string): string[] {
  return line.match(WORD) ?? [];
}

type Bag = Map<string, number>;

function bag(line: string): Bag {
  const out: Bag = new Map();
  for (const word of words(line)) {
    if (word.trim() !== '' && !'()[],'.includes(word)) {
      out.set(word, (out.get(word) ?? 0) + 1);
    }
  }
  return out;
}

function total(of: Bag): number {
  let sum = 0;
  of.forEach(count => (sum += count));
  return sum;
}

function alike(old: Bag, now: Bag, sameStart: boolean): number {
  const [before, all] = [total(old), total(old) + total(now)];
  if (before === 0 || all === 0) {
    return 0;
  }
  let common = 0;
  old.forEach((count, word) => (common += Math.min(count, now.get(word) ?? 0)));
  return common / all + common / (2 * Math.max(before, 4)) + (sameStart ? 0.2 : 0);
}

/** Longest common subsequence by Myers' greedy search; pairs of equal positions, ascending. */
function matches<T>(a: readonly T[], b: readonly T[]): [number, number][] {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) {
    head += 1;
  }
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) {
    tail += 1;
  }
  const out: [number, number][] = [];
  for (let k = 0; k < head; k += 1) {
    out.push([k, k]);
  }
  const [left, right] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
  middle(left, right).forEach(([i, j]) => out.push([i + head, j + head]));
  for (let k = tail; k > 0; k -= 1) {
    out.push([a.length - k, b.length - k]);
  }
  return out;
}

function middle<T>(a: readonly T[], b: readonly T[]): [number, number][] {
  const [n, m] = [a.length, b.length];
  if (n === 0 || m === 0) {
    return [];
  }
  const most = Math.min(n + m, 2000); // texts further apart than that share too little to be compared
  const reach = new Int32Array(2 * most + 3);
  const trace: Int32Array[] = [];
  const zero = most + 1;
  for (let d = 0; d <= most; d += 1) {
    trace.push(reach.slice());
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (reach[zero + k - 1] ?? 0) < (reach[zero + k + 1] ?? 0));
      let x = down ? (reach[zero + k + 1] ?? 0) : (reach[zero + k - 1] ?? 0) + 1;
      let y = x - k;
      while (x < n && y < m && a[x] === b[y]) {
        x += 1;
        y += 1;
      }
      reach[zero + k] = x;
      if (x >= n && y >= m) {
        return walkBack(trace, zero, d, n, m);
      }
    }
  }
  return [];
}

function walkBack(trace: readonly Int32Array[], zero: number, depth: number, n: number, m: number): [number, number][] {
  const out: [number, number][] = [];
  let [x, y] = [n, m];
  for (let d = depth; d >= 0; d -= 1) {
    const reach = trace[d]!;
    const k = x - y;
    const down = k === -d || (k !== d && (reach[zero + k - 1] ?? 0) < (reach[zero + k + 1] ?? 0));
    const from = down ? k + 1 : k - 1;
    const fromX = d === 0 ? 0 : (reach[zero + from] ?? 0);
    const fromY = d === 0 ? 0 : fromX - from;
    while (x > fromX && y > fromY) {
      x -= 1;
      y -= 1;
      out.push([x, y]);
    }
    [x, y] = [fromX, fromY];
  }
  return out.reverse();
}

type Span = [number, number];

/** A changed line: what is new in it, and what of that only follows from sizes. */
function lineChange(old: string, now: string, sizes: Sizes, removed: readonly string[]): LineChange {
  const [before, after] = [words(old.trim()), words(now.trim())];
  const bare = after.map((word, at) => (word.trim() === '' ? -1 : at)).filter(at => at >= 0);
  const names = bare.map(at => after[at]!);
  const starts = [now.length - now.trimStart().length];
  after.forEach((word, at) => starts.push(starts[at]! + word.length));
  const [spans, sized]: [Span[], Span[]] = [[], []];
  let [i, j, whole] = [0, 0, true];
  for (const [a, b] of [...matches(before, after), [before.length, after.length] as const]) {
    if (a > i || b > j) {
      const was = before.slice(i, a).filter(word => word.trim() !== '');
      const places = bare.filter(at => at >= j && at < b);
      const follows = was.length === places.length && was.length > 0 &&
        was.every((word, at) => word === after[places[at]!] || sizes.explain(word, names, bare.indexOf(places[at]!)));
      whole &&= follows;
      if (b > j) {
        join(follows ? sized : spans, starts[j]!, starts[b]!, now);
      }
    }
    [i, j] = [a + 1, b + 1];
  }
  return { kind: whole && sized.length > 0 ? 'sized' : 'changed', spans, sizes: sized, removed };
}

/** A span more; one with its neighbour where only blanks and commas stand between. */
function join(spans: Span[], start: number, end: number, line: string): void {
  const last = spans[spans.length - 1];
  if (last !== undefined && /^[ ,]*$/.test(line.slice(last[1], start))) {
    last[1] = end;
  } else {
    spans.push([start, end]);
  }
}

/** For each new line the old line that it is a form of (-1: none), in order: the heaviest such pairing. */
function paired(old: readonly string[], now: readonly string[]): number[] {
  const [rows, columns] = [old.length, now.length];
  const found = new Array<number>(columns).fill(-1);
  if (rows * columns > MOST_PAIRS) {
    return found;
  }
  const [before, after] = [old.map(bag), now.map(bag)];
  const [starts, nowStarts] = [old.map(line => words(line)[0]), now.map(line => words(line)[0])];
  const best = Array.from({ length: rows + 1 }, () => new Float64Array(columns + 1));
  const take = Array.from({ length: rows + 1 }, () => new Uint8Array(columns + 1));
  for (let i = 1; i <= rows; i += 1) {
    for (let j = 1; j <= columns; j += 1) {
      const score = alike(before[i - 1]!, after[j - 1]!, starts[i - 1] === nowStarts[j - 1]);
      let value = Math.max(best[i - 1]![j]!, best[i]![j - 1]!);
      if (score >= ALIKE && best[i - 1]![j - 1]! + score > value) {
        value = best[i - 1]![j - 1]! + score;
        take[i]![j] = 1;
      }
      best[i]![j] = value;
    }
  }
  let [i, j] = [rows, columns];
  while (i > 0 && j > 0) {
    if (take[i]![j]) {
      found[j - 1] = i - 1;
      [i, j] = [i - 1, j - 1];
    } else if (best[i - 1]![j]! >= best[i]![j - 1]!) {
      i -= 1;
    } else {
      j -= 1;
    }
  }
  return found;
}

/**
 * The changes of each line of `now` against `old`. Indentation is no change: a stage may wrap what it keeps. `sizes` are the
 * parameters behind both: what only follows from them is told apart.
 */
export function diffTexts(old: readonly string[], now: readonly string[], sizes = NO_SIZES): TextDiff {
  const [bareOld, bareNow] = [old.map(line => line.trim()), now.map(line => line.trim())];
  const lines: LineChange[] = [];
  let [i, j] = [0, 0];
  let gone: string[] = [];
  const left = (from: number, to: number): string[] => old.slice(from, to).filter(line => line.trim() !== '');
  const block = (toOld: number, toNow: number): void => {
    const partners = paired(bareOld.slice(i, toOld), bareNow.slice(j, toNow));
    let taken = i;
    partners.forEach((partner, at) => {
      const line = now[j + at]!;
      if (partner < 0) {
        lines.push({ ...SAME, kind: line.trim() === '' ? 'same' : 'new', removed: gone });
      } else {
        gone.push(...left(taken, i + partner));
        lines.push(lineChange(old[i + partner]!, line, sizes, gone));
        taken = i + partner + 1;
      }
      gone = [];
    });
    gone.push(...left(taken, toOld));
  };
  for (const [a, b] of matches(bareOld, bareNow)) {
    block(a, b);
    lines.push(gone.length > 0 ? { ...SAME, removed: gone } : SAME);
    gone = [];
    [i, j] = [a + 1, b + 1];
  }
  block(old.length, now.length);
  return { lines, removedAtEnd: gone };
}

const KINDS: readonly (readonly [string, string, string])[] = [
  ['+', 'new', 'new'], ['~', 'changed', 'changed'], ['\u2248', 'sized', 'only in sizes'], ['\u2212', 'gone', 'gone']
];

/** What a difference amounts to: `+6 ~9 ≈3 −2`, lines new, changed, changed in sizes alone, gone; and the same in words. */
export function summary(diff: TextDiff): { readonly text: string; readonly told: string } {
  const count = (kind: string): number =>
    kind === 'gone'
      ? diff.lines.reduce((sum, line) => sum + line.removed.length, diff.removedAtEnd.length)
      : diff.lines.filter(line => line.kind === kind).length;
  const parts = KINDS.map(([sign, kind, word]) => ({ sign, word, n: count(kind) })).filter(({ n }) => n > 0);
  return {
    text: parts.map(({ sign, n }) => `${sign}${n}`).join(' ') || 'unchanged',
    told: parts.map(({ word, n }) => `${n} ${word}`).join(', ') || 'no line has changed'
  };
}
