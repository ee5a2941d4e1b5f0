/** What the drawings of a chart share: their size, axes, units, and points that are chosen by mouse and keyboard. */

import { focusedNear, onKey } from '../dom';
import { draw } from './drawn/svg';
import { ChartData, PointData } from './state';

/** What a drawing is made from. `here` is the number of the position of now, `now` its values. */
export interface Scene {
  readonly chart: ChartData;
  readonly here: number | null;
  readonly now: Readonly<Record<string, string>>;
  readonly restore: (number: number) => void;
}

export const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [520, 300, 62, 40, 26, 14];

/** What is said of a point, by a tip and by a screen reader. */
export function saidOf(point: PointData): string {
  const beside = point.to_best === '' ? '' : `; ${point.to_best}`;
  const rate = point.rate_text === '' ? '' : `, ${point.rate_text}`;
  return `${point.label}${point.edited ? ' (edited)' : ''}: ${point.time}${rate}${beside}${point.flagged === '' ? '' : `; ${point.flagged}`}`;
}

/** A piece of a drawing that goes back to a position. */
export function handle(group: SVGElement, said: string, chosen: () => void): SVGElement {
  group.setAttribute('role', 'button');
  group.setAttribute('tabindex', '0');
  group.setAttribute('aria-label', `go back to ${said}`);
  group.addEventListener('click', chosen);
  onKey(group, event => {
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      event.stopPropagation();
      chosen();
    }
  });
  return group;
}

/** One stop of the Tab key for a drawing with many points; arrow keys, Home and End go from one to the next. */
export function plot(label: string, parts: SVGElement[], first = 0): SVGElement {
  const out = draw('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: 'tbx-plot', role: 'group', 'aria-label': label }, ...parts);
  const points = [...out.querySelectorAll<SVGElement>('[role=button]')];
  const focus = (at: number): void => points.forEach((point, k) => point.setAttribute('tabindex', k === at ? '0' : '-1'));
  focus(Math.min(first, points.length - 1));
  onKey(out, event => {
    const now = points.findIndex(point => point === focusedNear(out));
    const next = { ArrowRight: now + 1, ArrowDown: now + 1, ArrowLeft: now - 1, ArrowUp: now - 1, Home: 0, End: points.length - 1 }[event.key];
    if (now >= 0 && next !== undefined) {
      event.preventDefault();
      event.stopPropagation();
      const to = (next + points.length) % points.length;
      focus(to);
      points[to]?.focus();
    }
  });
  return out;
}

export function grid(y: number, text: string): SVGElement {
  return draw('g', {}, draw('line', { x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y, class: 'tbx-grid' }), draw('text', { x: LEFT - 6, y: y + 4, class: 'tbx-axis tbx-end' }, text));
}

/** The values of a name in their order: numbers by size, others as they came. */
export function valuesOf(chart: ChartData, name: string): string[] {
  const found = [...chart.points, ...chart.refused].map(point => point.values[name] ?? '');
  const values = [...new Set(found)].filter(text => text !== '');
  const numbers = values.every(text => Number.isFinite(Number(text)));
  return numbers ? values.sort((a, b) => Number(a) - Number(b)) : values;
}

/** Four or five round numbers from 0 to `most`. */
export function ticksOf(most: number): number[] {
  const raw = most / 4;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map(k => k * size).find(k => k >= raw) ?? raw;
  const out: number[] = [];
  for (let k = 0; k * step <= most; k += 1) {
    out.push(Number((k * step).toPrecision(3)));
  }
  return out;
}

export function rateScale(most: number, unit: string): [number, string] {
  const [size, lead] = ([[1e12, 'T'], [1e9, 'G'], [1e6, 'M']] as const).find(([least]) => most >= least) ?? [1, ''];
  return [size, `${lead}${unit}`];
}

export function timeScale(most: number): [number, string] {
  return ([[1, 's'], [1e-3, 'ms'], [1e-6, 'us']] as [number, string][]).find(([least]) => most >= least) ?? [1e-9, 'ns'];
}

/** What the steps of colour mean, by their numbers; the last is of what cannot be told. */
export const STEP_NAMES = ['fastest, or not told apart from it', 'to 10 % slower', 'to 30 %', 'to twice the time', 'more', 'not told: few runs'];

/** The class of a point's step. */
export function stepClass(step: number): string {
  return `tbx-step${step < 0 ? 5 : step}`;
}
