/** Measured positions under the measured roof, both axes by powers of ten, joined in their order. */

import { draw } from './drawn/svg';
import { BOTTOM, handle, HEIGHT, LEFT, plot, RIGHT, saidOf, Scene, TOP, WIDTH } from './plot';
import { ChartData, PointData } from './state';

interface Placed {
  readonly point: PointData;
  readonly x: number;
  readonly y: number;
}

/** Whether both ceilings are known, and some position has its place under them. */
export function hasRoof(chart: ChartData): boolean {
  return chart.roof_flops !== null && chart.roof_bytes !== null && chart.points.some(point => point.intensity !== null && point.flops !== null);
}

/** The drawing. */
export function roofline(scene: Scene): SVGElement {
  const { chart } = scene;
  const [flops, bytes] = [chart.roof_flops ?? 1, chart.roof_bytes ?? 1];
  const good = chart.points.filter(point => point.intensity !== null && point.flops !== null);
  const ridge = flops / bytes;
  const least = Math.floor(Math.log10(Math.min(ridge / 4, ...good.map(point => point.intensity! / 2))));
  const most = Math.ceil(Math.log10(Math.max(ridge * 4, ...good.map(point => point.intensity! * 2))));
  const top = Math.ceil(Math.log10(flops * 1.2));
  const low = Math.min(top - 2, Math.floor(Math.log10(Math.min(...good.map(point => point.flops! / 2)))));
  const x = (of: number): number => LEFT + ((Math.log10(of) - least) / (most - least)) * (WIDTH - LEFT - RIGHT);
  const y = (of: number): number => HEIGHT - BOTTOM - ((Math.log10(of) - low) / (top - low)) * (HEIGHT - BOTTOM - TOP);
  const parts: SVGElement[] = [];
  for (let power = low; power <= top; power += 1) {
    parts.push(draw('line', { x1: LEFT, x2: WIDTH - RIGHT, y1: y(10 ** power), y2: y(10 ** power), class: 'tbx-grid' }));
    parts.push(draw('text', { x: LEFT - 6, y: y(10 ** power) + 4, class: 'tbx-axis tbx-end' }, scaled(10 ** power)));
  }
  for (let power = least; power <= most; power += 1) {
    parts.push(draw('text', { x: x(10 ** power), y: HEIGHT - BOTTOM + 16, class: 'tbx-axis tbx-mid' }, String(10 ** power)));
  }
  const floor = Math.max(10 ** least, 10 ** low / bytes);
  const roof = `M${x(floor)} ${y(floor * bytes)}L${x(ridge)} ${y(flops)}L${x(10 ** most)} ${y(flops)}`;
  parts.push(draw('path', { d: roof, class: 'tbx-roof' }));
  parts.push(draw('text', { x: WIDTH - RIGHT, y: y(flops) - 5, class: 'tbx-axis tbx-end' }, `${scaled(flops)}FLOP/s`));
  parts.push(draw('text', { x: (WIDTH + LEFT) / 2, y: HEIGHT - 6, class: 'tbx-axis tbx-mid' }, 'FLOP a byte of compulsory traffic'));
  const placed = good.map(point => ({ point, x: x(point.intensity!), y: y(point.flops!) }));
  parts.push(draw('polyline', { points: placed.map(at => `${at.x},${at.y}`).join(' '), class: 'tbx-path' }));
  placed.forEach(at => parts.push(dot(scene, at, flops, bytes)));
  return plot(`roofline of ${chart.target}: ${good.length} positions`, parts, Math.max(0, good.findIndex(point => point.number === scene.here)));
}

function dot(scene: Scene, { point, x, y }: Placed, flops: number, bytes: number): SVGElement {
  const limit = Math.min(flops, point.intensity! * bytes);
  const part = ((100 * point.flops!) / limit).toPrecision(2);
  const said = `${saidOf(point)}; ${part} % of what the roof allows`;
  const here = point.number === scene.here;
  const circle = draw('circle', { cx: x, cy: y, r: here ? 6 : 4.5 }, draw('title', {}, said));
  return handle(draw('g', { class: `tbx-point${here ? ' tbx-here' : ''}` }, circle), said, () => scene.restore(point.number));
}

function scaled(value: number): string {
  const [size, lead] = ([[1e12, ' T'], [1e9, ' G'], [1e6, ' M'], [1e3, ' k']] as const).find(([least]) => value >= least) ?? [1, ' '];
  return `${Number((value / size).toPrecision(3))}${lead}`;
}
