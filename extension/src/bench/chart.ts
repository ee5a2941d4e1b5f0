/** The chart of measured positions: their times or rates against a parameter or in their order. */

import { make } from '../dom';
import { draw } from './drawn/svg';
import { hasRoof, roofline } from './roofline';
import { ChartData as Chart, PointData as Point } from './state';

type Axis = { readonly title: string; readonly places: Map<Point, number>; readonly ticks: [number, string][] };

/** The value of the axis that stands for a roofline; no parameter has such a name. */
const ROOF = ' roof';
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [520, 300, 62, 40, 14, 14];

export class ChartView {
  readonly element = make('div', { class: 'tbx-chart' });
  private along = '';
  private showRate = true;

  /** `restore` is called with the number of the point that a person chose. */
  constructor(private readonly restore: (number: number) => void) {}

  show(chart: Chart | null): void {
    if (chart === null || chart.points.length === 0) {
      this.element.replaceChildren(make('p', { class: 'tbx-quiet tbx-say' }, 'Nothing is measured yet: Measure times each position.'));
      return;
    }
    const method = make('details', { class: 'tbx-method' }, make('summary', {}, 'How this was measured'));
    method.append(...chart.method.map(line => make('p', {}, line)));
    const picture = this.along === ROOF ? roofline(chart, point => this.restore(point.number)) : this.picture(chart);
    this.element.replaceChildren(this.bar(chart), picture, this.verdict(chart), method, this.table(chart));
  }

  private bar(chart: Chart): HTMLElement {
    const axis = make('select', { 'aria-label': 'horizontal axis' }, make('option', { value: '' }, 'in their order'));
    chart.varied.forEach(name => axis.append(make('option', { value: name }, `by ${name}`)));
    const roof = hasRoof(chart);
    if (roof) {
      axis.append(make('option', { value: ROOF }, 'under the roof'));
    }
    if (!chart.varied.includes(this.along) && !(roof && this.along === ROOF)) {
      this.along = chart.varied.length === 1 ? chart.varied[0]! : '';
    }
    axis.value = this.along;
    axis.addEventListener('change', () => {
      this.along = axis.value;
      this.show(chart);
    });
    const rates = chart.points.some(point => point.rate !== null);
    const what = make('button', { type: 'button', class: 'tbx-button', 'aria-pressed': String(this.showRate && rates) }, 'rate');
    what.addEventListener('click', () => {
      this.showRate = !this.showRate;
      this.show(chart);
    });
    return make('div', { class: 'tbx-chart-bar' }, axis, ...(rates ? [what] : []), make('span', { class: 'tbx-quiet' }, `on ${chart.target}`));
  }

  private picture(chart: Chart): SVGElement {
    const rates = this.showRate && chart.points.some(point => point.rate !== null);
    const value = (point: Point): number | null => (rates ? point.rate : point.seconds);
    const ends = (point: Point): [number, number] =>
      rates ? [point.rate_low ?? point.rate ?? 0, point.rate_high ?? point.rate ?? 0] : [point.low ?? 0, point.high ?? 0];
    const good = chart.points.filter(point => value(point) !== null);
    const ceiling = rates && chart.ceiling !== null ? chart.ceiling : 0;
    const seen = Math.max(...good.map(point => ends(point)[1]), 0);
    // A ceiling far above everything would press the points to the ground; it is then said in words alone.
    const most = (ceiling > 0 && ceiling < 4 * seen ? Math.max(ceiling, seen) : seen) * 1.06 || 1;
    const [scale, unit] = rates ? rateScale(most, chart.unit) : timeScale(most);
    const axis = this.axis(chart);
    const x = (point: Point): number => LEFT + (axis.places.get(point) ?? 0.5) * (WIDTH - LEFT - RIGHT);
    const y = (of: number): number => HEIGHT - BOTTOM - (of / most) * (HEIGHT - BOTTOM - TOP);
    const parts: SVGElement[] = ticksOf(most / scale).map(tick => grid(y(tick * scale), String(tick)));
    parts.push(draw('text', { x: 6, y: 10, class: 'tbx-axis' }, unit));
    if (ceiling > 0 && ceiling <= most) {
      parts.push(draw('line', { x1: LEFT, x2: WIDTH - RIGHT, y1: y(ceiling), y2: y(ceiling), class: 'tbx-ceiling' }));
      parts.push(draw('text', { x: WIDTH - RIGHT, y: y(ceiling) - 4, class: 'tbx-axis tbx-end' }, chart.ceiling_text));
    }
    axis.ticks.forEach(([place, text]) => {
      parts.push(draw('text', { x: LEFT + place * (WIDTH - LEFT - RIGHT), y: HEIGHT - BOTTOM + 16, class: 'tbx-axis tbx-mid' }, text));
    });
    parts.push(draw('text', { x: (WIDTH + LEFT) / 2, y: HEIGHT - 6, class: 'tbx-axis tbx-mid' }, axis.title));
    good.forEach(point => parts.push(this.dot(chart, point, x(point), y(value(point)!), ends(point).map(y) as [number, number])));
    chart.points.filter(point => value(point) === null).forEach(point => parts.push(this.failed(point, x(point))));
    return draw('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: 'tbx-plot', role: 'group', 'aria-label': `measured positions, ${unit}` }, ...parts);
  }

  private dot(chart: Chart, point: Point, x: number, y: number, ends: [number, number]): SVGElement {
    const kinds = ['tbx-point', point.here ? 'tbx-here' : '', point.flagged !== '' ? 'tbx-flagged' : ''];
    kinds.push(point.edited ? 'tbx-edited' : '');
    kinds.push(chart.decided && chart.leader === point.number ? 'tbx-leader' : '');
    const said = `${point.label}: ${point.time}${point.rate_text === '' ? '' : `, ${point.rate_text}`}${point.flagged === '' ? '' : `; ${point.flagged}`}`;
    const circle = draw('circle', { cx: x, cy: y, r: point.here ? 6 : 4.5 }, draw('title', {}, said));
    const whisker = draw('line', { x1: x, x2: x, y1: ends[0], y2: ends[1], class: 'tbx-whisker' });
    return this.handle(draw('g', { class: kinds.filter(Boolean).join(' ') }, whisker, circle), point, said);
  }

  private failed(point: Point, x: number): SVGElement {
    const y = HEIGHT - BOTTOM - 6;
    const cross = draw('path', { d: `M${x - 4} ${y - 4}l8 8m0 -8l-8 8`, class: 'tbx-cross' }, draw('title', {}, `${point.label}: ${point.failure}`));
    return this.handle(draw('g', { class: 'tbx-point' }, cross), point, `${point.label}: ${point.failure}`);
  }

  private handle(group: SVGElement, point: Point, said: string): SVGElement {
    group.setAttribute('role', 'button');
    group.setAttribute('tabindex', '0');
    group.setAttribute('aria-label', `go back to ${said}`);
    group.addEventListener('click', () => this.restore(point.number));
    group.addEventListener('keydown', event => {
      if (event.key === 'Enter' || event.key === ' ') {
        event.preventDefault();
        event.stopPropagation();
        this.restore(point.number);
      }
    });
    return group;
  }

  private axis(chart: Chart): Axis {
    const values = [...new Set(chart.points.map(point => point.values[this.along] ?? ''))];
    const numbers = values.every(text => text !== '' && Number.isFinite(Number(text)));
    if (this.along !== '') {
      const ordered = numbers ? [...values].sort((a, b) => Number(a) - Number(b)) : values;
      const place = (at: number): number => (ordered.length === 1 ? 0.5 : 0.05 + (0.9 * at) / (ordered.length - 1));
      const places = new Map(chart.points.map(point => [point, place(ordered.indexOf(point.values[this.along] ?? ''))]));
      return { title: this.along, places, ticks: ordered.map((text, at) => [place(at), text]) };
    }
    const count = chart.points.length;
    const place = (at: number): number => (count === 1 ? 0.5 : 0.05 + (0.9 * at) / (count - 1));
    const step = Math.ceil(count / 12);
    return {
      title: 'positions in the order of their first run',
      places: new Map(chart.points.map((point, at) => [point, place(at)])),
      ticks: chart.points.flatMap((point, at) => (at % step === 0 ? [[place(at), String(point.number)] as [number, string]] : []))
    };
  }

  private verdict(chart: Chart): HTMLElement {
    const leader = chart.points.find(point => point.number === chart.leader);
    if (leader === undefined || chart.points.length < 2) {
      return make('p', { class: 'tbx-say tbx-quiet' }, '');
    }
    const text = chart.decided
      ? `Fastest: ${leader.label}, ${leader.time}.`
      : `Fastest so far: ${leader.label}, ${leader.time}; what runs of one position differ by could explain that.`;
    return make('p', { class: `tbx-say ${chart.decided ? 'tbx-tone-good' : 'tbx-quiet'}` }, text);
  }

  private table(chart: Chart): HTMLElement {
    const rows = chart.points.map(point => {
      const cells = [String(point.number), point.label, point.seconds === null ? '-' : point.time, point.rate_text || '-', point.runs || '-', point.flagged || point.failure];
      return make('tr', point.here ? { class: 'tbx-now' } : {}, ...cells.map(text => make('td', {}, text)));
    });
    const head = make('tr', {}, ...['', 'position', 'time', 'rate', 'runs', 'note'].map(text => make('th', { scope: 'col' }, text)));
    const table = make('table', { class: 'tbx-table' }, make('thead', {}, head), make('tbody', {}, ...rows));
    return make('details', { class: 'tbx-method' }, make('summary', {}, `Table of ${chart.points.length} positions`), make('div', { class: 'tbx-wide' }, table));
  }
}

/** A line of the newest medians, small enough for the header. */
export function sparkline(chart: Chart | null): SVGElement | null {
  const points = (chart?.points ?? []).filter(point => point.seconds !== null).slice(-24);
  if (points.length < 2) {
    return null;
  }
  const most = Math.max(...points.map(point => point.seconds!));
  const at = points.map((point, k) => `${(2 + (76 * k) / (points.length - 1)).toFixed(1)},${(18 - (15 * point.seconds!) / most).toFixed(1)}`);
  const said = `times of the last ${points.length} positions: ${points.map(point => point.time).join(', ')}`;
  const here = points.findIndex(point => point.here);
  const dot = here < 0 ? [] : [draw('circle', { cx: at[here]!.split(',')[0]!, cy: at[here]!.split(',')[1]!, r: 2.5 })];
  return draw('svg', { width: 80, height: 20, class: 'tbx-spark', role: 'img', 'aria-label': said }, draw('title', {}, said), draw('polyline', { points: at.join(' ') }), ...dot);
}

function grid(y: number, text: string): SVGElement {
  return draw('g', {}, draw('line', { x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y, class: 'tbx-grid' }), draw('text', { x: LEFT - 6, y: y + 4, class: 'tbx-axis tbx-end' }, text));
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

function rateScale(most: number, unit: string): [number, string] {
  const [size, lead] = ([[1e12, 'T'], [1e9, 'G'], [1e6, 'M']] as const).find(([least]) => most >= least) ?? [1, ''];
  return [size, `${lead}${unit}`];
}

function timeScale(most: number): [number, string] {
  return ([[1, 's'], [1e-3, 'ms'], [1e-6, 'us']] as [number, string][]).find(([least]) => most >= least) ?? [1e-9, 'ns'];
}
