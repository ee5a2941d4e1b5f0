/** One row of a pane as elements: its number, its gutters, and the tokens of its text. */

import { make } from '../../dom';
import { pieces } from '../../highlight';
import { LineChange, TextDiff } from '../text/diff';
import { marked } from '../text/marked';
import { Fold, Row } from '../text/rows';
import { Gutter, Token } from './door';

/** Pixels of a row; the style sheet has the same. */
export const ROW = 18;

/** All that decides how the rows of a pane look. */
export interface Look {
  readonly lines: readonly string[];
  readonly language: string;
  /** The number of the first line. */
  readonly first: number;
  /** What the ids of its rows begin with. */
  readonly id: string;
  diff: TextDiff | null;
  lit: ReadonlySet<number>;
  current: number;
  /** What is searched for. */
  wanted: string;
  gutters: readonly Gutter[];
  /** Those of them that there is room for. */
  shown: readonly Gutter[];
  explains(line: number, token: Token): string;
}

/** Letters of the widest line number. */
function digits(look: Look): number {
  return String(look.first + look.lines.length).length;
}

/** The least letters of a text that gutters leave room for. */
const LEAST = 24;

/** The gutters that there is room for where a row has so many letters: the last ones, which were chosen, first. */
export function fittingGutters(look: Look, letters: number): Gutter[] {
  const out: Gutter[] = [];
  let room = letters - digits(look) - 1 - LEAST;
  for (const gutter of [...look.gutters].reverse()) {
    const columns = room > gutter.columns ? gutter.columns : Math.min(gutter.narrow, gutter.columns);
    if (columns > 0) {
      out.unshift({ ...gutter, columns });
      room -= columns + 1;
    }
  }
  return out;
}

/** Letters in front of a text: number, sign of a change, gutters. */
export function margin(look: Look): number {
  return digits(look) + 1 + look.shown.reduce((sum, gutter) => sum + gutter.columns + 1, 0);
}

/** The element of a row, the `at`th from the top. */
export function rowElement(look: Look, row: Row, at: number, folds: readonly Fold[]): HTMLElement {
  const change = look.diff?.lines[row.line];
  const start = row.first;
  const cut = change !== undefined && change.removed.length > 0 && start;
  const kinds = [
    'tbx-row', change === undefined ? '' : `tbx-${change.kind}`, look.lit.has(row.line) ? 'tbx-lit' : '',
    row.line === look.current && start ? 'tbx-now' : '', cut ? 'tbx-cut' : '', row.folded > 0 ? 'tbx-folded' : ''
  ];
  const out = make('div', {
    class: kinds.filter(Boolean).join(' '), style: `top:${at * ROW + 4}px`, id: `${look.id}-${row.line}-${row.first ? 0 : row.start}`,
    'data-line': String(row.line), role: 'option', 'aria-selected': String(row.line === look.current)
  });
  const width = digits(look);
  if (row.folded > 0) {
    const says = folds.find(fold => fold.from === row.line)?.says ?? '';
    out.append(make('i', { class: 'tbx-number' }, '\u25b8'.padStart(width)), ` ${row.folded} lines ${says}`);
    return out;
  }
  if (cut) {
    out.title = `gone before this line: ${change.removed.map(line => line.trim()).join(' | ')}`;
  }
  const sign = change === undefined ? ' ' : { same: ' ', sized: '\u2248', changed: '~', new: '+' }[change.kind];
  const number = start ? `${String(look.first + row.line).padStart(width)}${sign}` : ' '.repeat(width + 1);
  out.append(
    make('i', { class: 'tbx-number' }, number), ...look.shown.map(gutter => cellElement(gutter, row)),
    ' '.repeat(row.indent), ...textNodes(look, row, change)
  );
  return out;
}

function cellElement(gutter: Gutter, row: Row): HTMLElement {
  const cell = row.first ? gutter.cell(row.line) : null;
  const out = make('i', { class: 'tbx-gutter', 'data-gutter': gutter.name }, (cell?.text ?? '').slice(0, gutter.columns).padStart(gutter.columns) + ' ');
  if (cell !== null) {
    out.style.setProperty('--weight', cell.weight.toFixed(3));
    out.dataset['says'] = cell.says;
  }
  return out;
}

function textNodes(look: Look, row: Row, change: LineChange | undefined): Node[] {
  const line = look.lines[row.line]!;
  const out: Node[] = [];
  const marks = change?.spans ?? [];
  const quiet = change?.kind === 'same';
  let start = 0;
  for (const [text, kind] of pieces(line, look.language)) {
    const [from, to] = [Math.max(start, row.start), Math.min(start + text.length, row.end)];
    if (from < to) {
      const nodes = marked(line, from, to, quiet ? '' : kind, marks, look.wanted, change?.sizes);
      const says = kind === 'space' ? '' : look.explains(row.line, { text, kind, start });
      out.push(...(says === '' ? nodes : [make('span', { class: 'tbx-said-of', 'data-says': says }, ...nodes)]));
    }
    start += text.length;
    if (start >= row.end) {
      break;
    }
  }
  return out;
}
