/** A token as nodes: coloured by its kind, with what is new or searched for marked. */

import { make } from '../../dom';

const PLAIN = new Set(['', 'space', 'text', 'name', 'punctuation']);

/** Characters `from` to `to` of a line, a token of `kind`, cut where a mark or a hit begins or ends. */
export function marked(
  line: string, from: number, to: number, kind: string, marks: readonly (readonly [number, number])[], wanted: string
): Node[] {
  const edges = new Set([from, to]);
  for (const [start, end] of marks) {
    [start, end].filter(edge => edge > from && edge < to).forEach(edge => edges.add(edge));
  }
  const ordered = [...edges].sort((a, b) => a - b);
  return ordered.slice(1).map((end, at) => {
    const start = ordered[at]!;
    const text = line.slice(start, end);
    const isNew = marks.some(([low, high]) => start >= low && end <= high);
    const isHit = wanted !== '' && text.toLowerCase().includes(wanted.toLowerCase());
    if (PLAIN.has(kind) && !isNew && !isHit) {
      return document.createTextNode(text);
    }
    const out = make(isNew || isHit ? 'mark' : 'span', {}, text);
    out.className = [PLAIN.has(kind) ? '' : `tb-t-${kind}`, isHit ? 'tbx-hit' : ''].filter(Boolean).join(' ');
    return out;
  });
}
