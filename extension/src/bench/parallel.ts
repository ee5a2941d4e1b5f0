/** Parallel coordinates: a line a position through its values, to its time. */

import { draw } from './drawn/svg';
import { BOTTOM, handle, HEIGHT, plot, rateScale, saidOf, Scene, stepClass, ticksOf, timeScale, TOP, valuesOf, WIDTH } from './plot';
import { PointData } from './state';

const [SIDE, END] = [46, 64];

/** The drawing; the last axis is the time, or the rate. */
export function parallel(scene: Scene, rates: boolean): SVGElement {
  const { chart } = scene;
  const names = chart.swept.length > 1 ? chart.swept : chart.varied;
  const value = (point: PointData): number => (rates ? point.rate : point.seconds) ?? 0;
  const good = chart.points.filter(point => point.seconds !== null && (!rates || point.rate !== null));
  const most = Math.max(...good.map(value), 0) * 1.04 || 1;
  const [scale, unit] = rates ? rateScale(most, chart.unit) : timeScale(most);
  const across = (at: number): number => SIDE + (at * (WIDTH - SIDE - END)) / names.length;
  const up = (part: number): number => HEIGHT - BOTTOM - part * (HEIGHT - BOTTOM - TOP - 8);
  const parts: SVGElement[] = [];
  const labels: SVGElement[] = [];
  const places = names.map((name, at) => {
    const ordered = valuesOf(chart, name);
    const place = (text: string): number => up(ordered.length < 2 ? 0.5 : ordered.indexOf(text) / (ordered.length - 1));
    parts.push(axisLine(across(at), name));
    ordered.forEach(text => labels.push(draw('text', { x: across(at) - 5, y: place(text) + 4, class: 'tbx-axis tbx-end tbx-halo' }, text)));
    return place;
  });
  const last = across(names.length);
  parts.push(axisLine(last, unit));
  ticksOf(most / scale).forEach(tick => {
    parts.push(draw('text', { x: last + 6, y: up((tick * scale) / most) + 4, class: 'tbx-axis' }, String(tick)));
  });
  chart.others.filter(other => (rates ? other.rate : other.seconds) !== null).forEach(other => {
    const y = up(((rates ? other.rate : other.seconds) ?? 0) / most);
    parts.push(draw('line', { x1: last - 12, x2: last + 4, y1: y, y2: y, class: 'tbx-other' }), draw('text', { x: last - 14, y: y + 4, class: 'tbx-other-name tbx-end' }, other.name));
  });
  // The fastest are drawn last, and so stand above the others; the position of now above all.
  const order = [...good].sort((a, b) => Number(a.number === scene.here) - Number(b.number === scene.here) || rank(b) - rank(a));
  order.forEach(point => {
    const through = names.map((name, at) => `${across(at).toFixed(1)},${places[at]!(point.values[name] ?? '').toFixed(1)}`);
    const shape = [...through, `${last.toFixed(1)},${up(value(point) / most).toFixed(1)}`].join(' ');
    const said = saidOf(point);
    const kinds = ['tbx-strand', stepClass(point.step), point.number === scene.here ? 'tbx-here' : ''].filter(Boolean).join(' ');
    const wide = draw('polyline', { points: shape, class: 'tbx-strand-wide' }, draw('title', {}, said));
    parts.push(handle(draw('g', { class: kinds }, wide, draw('polyline', { points: shape })), said, () => scene.restore(point.number)));
  });
  parts.push(...labels);
  return plot(`parallel coordinates of ${names.join(', ')} and ${unit}`, parts);
}

function rank(point: PointData): number {
  return point.step < 0 ? 5 : point.step;
}

function axisLine(x: number, title: string): SVGElement {
  return draw('g', {}, draw('line', { x1: x, x2: x, y1: TOP + 8, y2: HEIGHT - BOTTOM, class: 'tbx-grid' }), draw('text', { x, y: HEIGHT - 14, class: 'tbx-axis tbx-mid' }, title));
}
