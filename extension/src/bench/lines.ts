/** Measured positions against one parameter, or in the order of their first run, with the range of each. */

import { draw } from './drawn/svg';
import { BOTTOM, grid, handle, HEIGHT, LEFT, plot, rateScale, RIGHT, saidOf, Scene, ticksOf, timeScale, TOP, valuesOf, WIDTH } from './plot';
import { OtherData, PointData, RefusedData } from './state';

interface Axis {
  readonly title: string;
  readonly place: (point: PointData | RefusedData) => number | null;
  readonly ticks: readonly [number, string][];
}

type Value = (of: PointData | OtherData) => number | null;
type Ends = (of: PointData | OtherData) => [number, number];

/** The drawing along `along`; empty, in their order. `rates`: rates instead of times. */
export function lines(scene: Scene, along: string, rates: boolean): SVGElement {
  const { chart } = scene;
  const value: Value = of => (rates ? of.rate : of.seconds);
  const ends: Ends = of => (rates ? [of.rate_low ?? of.rate ?? 0, of.rate_high ?? of.rate ?? 0] : [of.low ?? of.seconds ?? 0, of.high ?? of.seconds ?? 0]);
  const good = chart.points.filter(point => value(point) !== null);
  const others = chart.others.filter(other => value(other) !== null);
  const ceiling = rates && chart.ceiling !== null ? chart.ceiling : 0;
  const seen = Math.max(...[...good, ...others].map(of => ends(of)[1]), 0);
  // A ceiling far above everything would press the points to the ground; it is then said in words alone.
  const most = (ceiling > 0 && ceiling < 4 * seen ? Math.max(ceiling, seen) : seen) * 1.06 || 1;
  const [scale, unit] = rates ? rateScale(most, chart.unit) : timeScale(most);
  const axis = along === '' ? orderAxis(scene) : valueAxis(scene, along);
  const x = (point: PointData | RefusedData): number => LEFT + (axis.place(point) ?? 0.5) * (WIDTH - LEFT - RIGHT);
  const y = (of: number): number => HEIGHT - BOTTOM - (of / most) * (HEIGHT - BOTTOM - TOP);
  const parts: SVGElement[] = ticksOf(most / scale).map(tick => grid(y(tick * scale), String(tick)));
  parts.push(draw('text', { x: 6, y: 13, class: 'tbx-axis' }, unit));
  if (ceiling > 0 && ceiling <= most) {
    parts.push(draw('line', { x1: LEFT, x2: WIDTH - RIGHT, y1: y(ceiling), y2: y(ceiling), class: 'tbx-ceiling' }));
    parts.push(draw('text', { x: WIDTH - RIGHT, y: y(ceiling) - 4, class: 'tbx-axis tbx-end' }, chart.ceiling_text));
  }
  axis.ticks.forEach(([place, text]) => {
    parts.push(draw('text', { x: LEFT + place * (WIDTH - LEFT - RIGHT), y: HEIGHT - BOTTOM + 16, class: 'tbx-axis tbx-mid' }, text));
  });
  parts.push(draw('text', { x: (WIDTH + LEFT) / 2, y: HEIGHT - 6, class: 'tbx-axis tbx-mid' }, axis.title));
  others.forEach((other, k) => parts.push(otherLine(other, k, y(value(other)!), ends(other).map(y) as [number, number])));
  if (along !== '') {
    parts.push(...paths(scene, along, good, point => [x(point), y(value(point)!)]));
  }
  good.forEach(point => parts.push(dot(scene, point, x(point), y(value(point)!), ends(point).map(y) as [number, number])));
  chart.points.filter(point => value(point) === null).forEach(point => parts.push(failed(scene, point, x(point))));
  if (along !== '') {
    chart.refused.filter(each => axis.place(each) !== null).forEach(each => parts.push(refused(each, x(each))));
  }
  return plot(`measured positions, ${unit}`, parts, Math.max(0, good.findIndex(point => point.number === scene.here)));
}

/** Positions that differ by `along` alone are joined; those beside the position of now stand out. */
function paths(scene: Scene, along: string, points: readonly PointData[], place: (point: PointData) => [number, number]): SVGElement[] {
  const rest = scene.chart.varied.filter(name => name !== along);
  const groups = new Map<string, PointData[]>();
  points.forEach(point => {
    const key = JSON.stringify(rest.map(name => point.values[name] ?? ''));
    groups.set(key, [...(groups.get(key) ?? []), point]);
  });
  const order = valuesOf(scene.chart, along);
  const here = JSON.stringify(rest.map(name => scene.now[name] ?? ''));
  return [...groups].filter(([, group]) => group.length > 1).map(([key, group]) => {
    const sorted = [...group].sort((a, b) => order.indexOf(a.values[along] ?? '') - order.indexOf(b.values[along] ?? ''));
    const shape = sorted.map(point => place(point).map(at => at.toFixed(1)).join(',')).join(' ');
    return draw('polyline', { points: shape, class: key === here ? 'tbx-series tbx-series-now' : 'tbx-series' });
  });
}

function dot(scene: Scene, point: PointData, x: number, y: number, ends: [number, number]): SVGElement {
  const here = point.number === scene.here;
  const kinds = ['tbx-point', here ? 'tbx-here' : '', point.flagged !== '' ? 'tbx-flagged' : '', point.edited ? 'tbx-edited' : ''];
  kinds.push(scene.chart.decided && scene.chart.leader === point.number ? 'tbx-leader' : '');
  const said = saidOf(point);
  const circle = draw('circle', { cx: x, cy: y, r: here ? 6 : 4.5 }, draw('title', {}, said));
  const whisker = draw('line', { x1: x, x2: x, y1: ends[0], y2: ends[1], class: 'tbx-whisker' });
  return handle(draw('g', { class: kinds.filter(Boolean).join(' ') }, whisker, circle), said, () => scene.restore(point.number));
}

function failed(scene: Scene, point: PointData, x: number): SVGElement {
  const said = `${point.label}: ${point.failure}`;
  return handle(draw('g', { class: 'tbx-point' }, cross(x, said)), said, () => scene.restore(point.number));
}

function refused(each: RefusedData, x: number): SVGElement {
  const said = `${each.label}: ${each.state}: ${each.why}`;
  return draw('g', { class: `tbx-${each.state}`, role: 'img', 'aria-label': said }, cross(x, said));
}

function cross(x: number, said: string): SVGElement {
  const y = HEIGHT - BOTTOM - 6;
  return draw('path', { d: `M${x - 4} ${y - 4}l8 8m0 -8l-8 8`, class: 'tbx-cross' }, draw('title', {}, said));
}

/** Another implementation: a line at its time, in the band of its range. */
function otherLine(other: OtherData, index: number, y: number, ends: [number, number]): SVGElement {
  const said = `${other.name}: ${other.time}${other.rate_text === '' ? '' : `, ${other.rate_text}`}; ${other.to_best}`;
  const [top, bottom] = [Math.min(...ends), Math.max(...ends)];
  const band = draw('rect', { x: LEFT, y: top, width: WIDTH - LEFT - RIGHT, height: Math.max(1, bottom - top), class: 'tbx-other-band' }, draw('title', {}, said));
  const line = draw('line', { x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y, class: 'tbx-other', 'stroke-dasharray': ['7 3', '3 3', '9 3 2 3', '1 3'][index % 4]! });
  const name = draw('text', { x: LEFT + 4, y: y - 4, class: 'tbx-other-name' }, `${other.name} ${other.time}`);
  return draw('g', { role: 'img', 'aria-label': said }, band, line, name);
}

function orderAxis(scene: Scene): Axis {
  const { points } = scene.chart;
  const place = (at: number): number => (points.length === 1 ? 0.5 : 0.05 + (0.9 * at) / (points.length - 1));
  const places = new Map<PointData | RefusedData, number>(points.map((point, at) => [point, place(at)]));
  const step = Math.ceil(points.length / 12);
  const ticks = points.flatMap((point, at) => (at % step === 0 ? [[place(at), String(point.number)] as [number, string]] : []));
  return { title: 'positions in the order of their first run', place: point => places.get(point) ?? null, ticks };
}

function valueAxis(scene: Scene, along: string): Axis {
  const ordered = valuesOf(scene.chart, along);
  const place = (at: number): number => (ordered.length === 1 ? 0.5 : 0.05 + (0.9 * at) / (ordered.length - 1));
  const found = (point: PointData | RefusedData): number | null => {
    const at = ordered.indexOf(point.values[along] ?? '');
    return at < 0 ? null : place(at);
  };
  return { title: along, place: found, ticks: ordered.map((text, at) => [place(at), text]) };
}
