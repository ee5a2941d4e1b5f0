/** Shared memory: addresses up, the statements of the program along; a buffer is a block of both. */

import { make, onKey } from '../../dom';
import { MapDrawing, SpanDrawing } from '../state';
import { draw } from '../drawn/svg';
import { COLOURS } from './cells';

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [460, 240, 62, 34, 8, 8];

export function mapElement(map: MapDrawing): HTMLElement {
  const most = Math.max(map.total, 1);
  const count = Math.max(1, map.lines.length);
  const x = (statement: number): number => LEFT + ((WIDTH - LEFT - RIGHT) * statement) / count;
  const y = (byte: number): number => HEIGHT - BOTTOM - ((HEIGHT - BOTTOM - TOP) * byte) / most;
  const said = make('p', { class: 'tbx-cells-said', role: 'status' }, 'Arrow keys move from buffer to buffer.');
  const groups = map.spans.map((span, at) => spanElement(span, at, x, y));
  const label = `shared memory, ${map.total} bytes by address over the program`;
  const svg = draw('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: 'tbx-plot', role: 'group', 'aria-label': label }, ...axes(map, x, y, most), ...groups);
  if (map.total > map.limit) {
    svg.append(draw('line', { x1: LEFT, x2: WIDTH - RIGHT, y1: y(map.limit), y2: y(map.limit), class: 'tbx-ceiling' }));
    svg.append(draw('text', { x: WIDTH - RIGHT, y: y(map.limit) - 3, class: 'tbx-end' }, 'limit of a block'));
  }
  const focus = (at: number): void => groups[(at + groups.length) % groups.length]?.focus();
  groups.forEach((group, at) => {
    group.addEventListener('focus', () => (said.textContent = map.spans[at]?.words ?? ''));
    group.addEventListener('pointerenter', () => (said.textContent = map.spans[at]?.words ?? ''));
    onKey(group, event => {
      const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (by !== undefined) {
        event.preventDefault();
        event.stopPropagation();
        focus(at + by);
      }
    });
  });
  return make('figure', { class: 'tbx-picture' }, svg as unknown as HTMLElement, said);
}

function spanElement(span: SpanDrawing, at: number, x: (statement: number) => number, y: (byte: number) => number): SVGElement {
  const [left, right] = [x(span.first), x(span.last + 1)];
  const [top, bottom] = [y(span.offset + span.bytes), y(span.offset)];
  const parts: (Node | string)[] = [
    draw('title', {}, span.words),
    draw('rect', { x: left, y: top, width: Math.max(2, right - left), height: Math.max(1, bottom - top), style: `fill:var(--c${at % COLOURS})`, class: 'tbx-span' })
  ];
  for (let part = 1; part < span.parts; part += 1) {
    const line = y(span.offset + (span.bytes * part) / span.parts);
    parts.push(draw('line', { x1: left, x2: right, y1: line, y2: line, class: 'tbx-part' }));
  }
  if (bottom - top > 12 && right - left > span.name.length * 6) {
    const stages = span.parts > 1 && right - left > 120 ? `${span.name}, ${span.parts} stages` : span.name;
    parts.push(draw('text', { x: (left + right) / 2, y: (top + bottom) / 2 + 4, class: 'tbx-mid' }, stages));
  }
  return draw('g', { class: 'tbx-span-of', tabindex: at === 0 ? 0 : -1, role: 'img', 'aria-label': span.words }, ...parts);
}

/** Bytes at the side; lines of the kernel where they change, as many as have room. */
function axes(map: MapDrawing, x: (statement: number) => number, y: (byte: number) => number, most: number): SVGElement[] {
  const out: SVGElement[] = [];
  const unit = most >= 4096 ? 1024 : 1;
  const step = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024].find(size => (size * unit * 6) >= most) ?? 2048;
  for (let byte = 0; byte <= most; byte += step * unit) {
    out.push(draw('line', { x1: LEFT, x2: WIDTH - RIGHT, y1: y(byte), y2: y(byte), class: 'tbx-grid' }));
    out.push(draw('text', { x: LEFT - 5, y: y(byte) + 4, class: 'tbx-end tbx-axis' }, unit === 1024 ? `${byte / unit} KiB` : `${byte} B`));
  }
  let last = -100;
  map.lines.forEach((line, statement) => {
    if (line > 0 && line !== map.lines[statement - 1] && x(statement) - last >= 16) {
      last = x(statement);
      out.push(draw('text', { x: last, y: HEIGHT - BOTTOM + 13, class: 'tbx-axis' }, String(line)));
    }
  });
  out.push(draw('text', { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 5, class: 'tbx-mid tbx-axis' }, 'lines of the kernel, in the order in which a block runs them'));
  return out;
}
