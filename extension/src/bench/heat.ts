/** A map of two parameters: a square a position, coloured only by what runs can tell apart. */

import { draw } from './drawn/svg';
import { BOTTOM, handle, HEIGHT, LEFT, plot, RIGHT, saidOf, Scene, stepClass, TOP, valuesOf, WIDTH } from './plot';
import { PointData } from './state';

/** What stands for the parameters that are on neither axis: their values of now, or the best of all. */
export type Rest = 'now' | 'best';

/** The drawing; names of other parameters are fixed or searched by `rest`. */
export function heat(scene: Scene, across: string, up: string, rest: Rest, rates: boolean): SVGElement {
  const [columns, rows] = [valuesOf(scene.chart, across), valuesOf(scene.chart, up)];
  const [width, height] = [(WIDTH - LEFT - RIGHT) / Math.max(1, columns.length), (HEIGHT - BOTTOM - TOP) / Math.max(1, rows.length)];
  const parts: SVGElement[] = [];
  rows.forEach((value, j) => {
    const y = HEIGHT - BOTTOM - (j + 1) * height;
    parts.push(draw('text', { x: LEFT - 6, y: y + height / 2 + 4, class: 'tbx-axis tbx-end' }, value));
    columns.forEach((column, i) => {
      parts.push(cell(scene, { [across]: column, [up]: value }, rest, rates, [LEFT + i * width, y, width, height]));
    });
  });
  columns.forEach((value, i) => {
    parts.push(draw('text', { x: LEFT + (i + 0.5) * width, y: HEIGHT - BOTTOM + 16, class: 'tbx-axis tbx-mid' }, value));
  });
  parts.push(draw('text', { x: (WIDTH + LEFT) / 2, y: HEIGHT - 6, class: 'tbx-axis tbx-mid' }, across));
  parts.push(draw('text', { x: 6, y: 13, class: 'tbx-axis' }, up));
  return plot(`map of ${across} and ${up}`, parts);
}

/** The point that stands in a square: of those that fit, the position of now's or the fastest. */
function pointAt(scene: Scene, values: Record<string, string>, rest: Rest): PointData | null {
  const fixed = rest === 'now' ? { ...restOf(scene, values), ...values } : values;
  const fits = scene.chart.points.filter(point => Object.entries(fixed).every(([name, value]) => point.values[name] === value));
  const timed = fits.filter(point => point.seconds !== null && point.flagged === '');
  const cost = (point: PointData): number => (scene.chart.alike || point.rate === null ? point.seconds! : -point.rate);
  return [...timed].sort((a, b) => cost(a) - cost(b))[0] ?? fits[0] ?? null;
}

function restOf(scene: Scene, values: Record<string, string>): Record<string, string> {
  const names = scene.chart.varied.filter(name => !(name in values));
  return Object.fromEntries(names.map(name => [name, scene.now[name] ?? '']));
}

function cell(scene: Scene, values: Record<string, string>, rest: Rest, rates: boolean, [x, y, width, height]: readonly [number, number, number, number]): SVGElement {
  const frame = { x: x + 1, y: y + 1, width: Math.max(1, width - 2), height: Math.max(1, height - 2) };
  const middle = { x: x + width / 2, y: y + height / 2 + 4, class: 'tbx-mid' };
  const point = pointAt(scene, values, rest);
  if (point === null || point.seconds === null) {
    const fixed = rest === 'now' ? { ...restOf(scene, values), ...values } : values;
    const found = scene.chart.refused.find(each => Object.entries(fixed).every(([name, value]) => each.values[name] === value));
    const word = point !== null ? 'failed' : found?.state ?? '';
    const said = point !== null ? `${point.label}: ${point.failure}` : found === undefined ? 'not measured' : `${found.label}: ${found.state}: ${found.why}`;
    const empty = draw('rect', { ...frame, class: word === '' ? 'tbx-cell-none' : `tbx-cell-none tbx-cell-${word}` }, draw('title', {}, said));
    return draw('g', { role: 'img', 'aria-label': said }, empty, draw('text', { ...middle, class: 'tbx-mid tbx-axis' }, width > 60 ? word : word.slice(0, 1)));
  }
  const here = point.number === scene.here;
  const kinds = ['tbx-cell', stepClass(point.step), here ? 'tbx-here' : ''].filter(Boolean).join(' ');
  const text = rates && point.rate_text !== '' ? point.rate_text : point.time;
  const best = scene.chart.leader === point.number ? '★ ' : '';
  const shown = width > 7 * (text.length + best.length) ? best + text : width > 40 ? best + text.split(' ')[0]! : best.trim();
  const said = saidOf(point);
  const square = draw('rect', frame, draw('title', {}, said));
  return handle(draw('g', { class: kinds }, square, draw('text', middle, shown)), said, () => scene.restore(point.number));
}
