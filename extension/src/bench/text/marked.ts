/** A token as nodes: coloured by its kind, with what is new or searched for marked. */

import { make } from '../../dom';

type Spans = readonly (readonly [number, number])[];

const PLAIN = new Set(['', 'space', 'text', 'name', 'punctuation']);

/** Characters `from` to `to` of a line, a token of `kind`, cut where a mark (of what is new, of a size) or a hit begins or ends. */
export function marked(
  line: string, from: number, to: number, kind: string, marks: Spans, wanted: string, sizes: Spans = []
): Node[] {
  const edges = new Set([from, to]);
  for (const [start, end] of [...marks, ...sizes]) {
    [start, end].filter(edge => edge > from && edge < to).forEach(edge => edges.add(edge));
  }
  const ordered = [...edges].sort((a, b) => a - b);
  return ordered.slice(1).map((end, at) => {
    const start = ordered[at]!;
    const text = line.slice(start, end);
    const within = ([low, high]: readonly [number, number]): boolean => start >= low && end <= high;
    const isSize = sizes.some(within);
    const isNew = isSize || marks.some(within);
    const isHit = wanted !== '' && text.toLowerCase().includes(wanted.toLowerCase());
    if (PLAIN.has(kind) && !isNew && !isHit) {
      return document.createTextNode(text);
    }
    const out = make(isNew || isHit ? 'mark' : 'span', {}, text);
    out.className = [PLAIN.has(kind) ? '' : `tb-t-${kind}`, isHit ? 'tbx-hit' : '', isSize ? 'tbx-size' : ''].filter(Boolean).join(' ');
    return out;
  });
}
