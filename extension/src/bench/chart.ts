/** The chart of measured positions: which picture of them is shown, what it says in words, and its table. */

import { button, focusedNear, make } from '../dom';
import { draw } from './drawn/svg';
import { headElement } from './blocks';
import { heat, Rest } from './heat';
import { lines } from './lines';
import { parallel } from './parallel';
import { Scene, STEP_NAMES } from './plot';
import { hasRoof, roofline } from './roofline';
import { BenchState, ChartData as Chart } from './state';

/** Kinds of picture that are no parameter; no parameter has such a name. */
const [ORDER, HEAT, PARALLEL, ROOF] = ['', ' heat', ' parallel', ' roof'];

export class ChartView {
  readonly element = make('div', { class: 'tbx-chart' });
  /** What a person chose; null until then. */
  private chosen: string | null = null;
  private across = '';
  private up = '';
  private rest: Rest = 'best';
  private showRate = true;
  private state: BenchState | null = null;
  private says = '';

  /** `restore` is called with the number of the point that a person chose. */
  constructor(private readonly restore: (number: number) => void) {}

  /** Draw what has changed; a status alone, which comes ten times a second, leaves all as a reader has it. */
  show(state: BenchState): void {
    this.state = state;
    const says = JSON.stringify([state.chart, state.here, state.now, state.moved]);
    if (says !== this.says) {
      this.says = says;
      this.draw(state);
    }
  }

  private draw(state: BenchState): void {
    const chart = state.chart;
    if (chart === null || chart.points.length === 0) {
      this.element.replaceChildren(make('p', { class: 'tbx-quiet tbx-say' }, 'Nothing is measured yet: Measure times each position.'));
      return;
    }
    const scene: Scene = { chart, here: state.here, now: state.now, restore: this.restore };
    const rates = this.showRate && chart.points.some(point => point.rate !== null);
    const kind = this.kind(chart);
    const method = make('details', { class: 'tbx-method' }, make('summary', {}, 'How this was measured'));
    method.append(...chart.method.map(line => make('p', {}, line)));
    const focused = this.focused();
    this.element.replaceChildren(this.bar(chart, kind, rates), this.picture(scene, kind, rates), ...this.legend(chart, kind), ...verdict(chart), method, table(scene));
    focused();
  }

  /** A chart is drawn anew with each run: the control that had the focus keeps it. */
  private focused(): () => void {
    const active = focusedNear(this.element);
    const label = active !== null && this.element.contains(active) ? active.getAttribute('aria-label') : null;
    return () => {
      const again = label === null ? undefined : [...this.element.querySelectorAll<HTMLElement>('[aria-label]')].find(each => each.getAttribute('aria-label') === label);
      again?.focus();
    };
  }

  private redraw(): void {
    if (this.state !== null) {
      this.draw(this.state);
    }
  }

  /** What a person chose as far as there is such a picture now, else what fits: a sweep's map, what was moved. */
  private kind(chart: Chart): string {
    const there = this.kinds(chart).map(([value]) => value);
    if (this.chosen !== null && there.includes(this.chosen)) {
      return this.chosen;
    }
    if (chart.swept.length > 1) {
      return HEAT;
    }
    const moved = this.state?.moved ?? '';
    return chart.varied.includes(moved) ? moved : chart.varied.length === 1 ? chart.varied[0]! : ORDER;
  }

  private kinds(chart: Chart): [string, string][] {
    const out: [string, string][] = [[ORDER, 'in their order'], ...chart.varied.map(name => [name, `by ${name}`] as [string, string])];
    out.push(...(chart.varied.length > 1 ? [[HEAT, 'map of two'] as [string, string]] : []));
    out.push(...(chart.varied.length > 2 ? [[PARALLEL, 'all parameters'] as [string, string]] : []));
    out.push(...(hasRoof(chart) ? [[ROOF, 'under the roof'] as [string, string]] : []));
    return out;
  }

  private bar(chart: Chart, kind: string, rates: boolean): HTMLElement {
    const kinds = select('picture of the runs', this.kinds(chart), kind, value => (this.chosen = value), () => this.redraw());
    const what = button('rate', 'by the rate, where it is known, or by the time', () => {
      this.showRate = !this.showRate;
      this.redraw();
    });
    what.setAttribute('aria-label', 'rate'); // by which the focus comes back to it
    what.setAttribute('aria-pressed', String(rates));
    const some = chart.points.some(point => point.rate !== null) && kind !== ROOF;
    const axes = kind === HEAT ? this.axes(chart) : [];
    return make('div', { class: 'tbx-chart-bar' }, kinds, ...axes, ...(some ? [what] : []), make('span', { class: 'tbx-quiet' }, `on ${chart.target}`));
  }

  /** The two axes of a map, and what stands for the other parameters. */
  private axes(chart: Chart): HTMLElement[] {
    const names = [...chart.swept, ...chart.varied.filter(name => !chart.swept.includes(name))];
    this.across = names.includes(this.across) ? this.across : names[0]!;
    this.up = names.includes(this.up) && this.up !== this.across ? this.up : names.find(name => name !== this.across)!;
    const pairs = names.map(name => [name, name] as [string, string]);
    const swapped = (): void => {
      this.up = this.up === this.across ? names.find(name => name !== this.across)! : this.up;
      this.redraw();
    };
    const out = [select('across', pairs, this.across, value => (this.across = value), swapped)];
    out.push(select('up', pairs.filter(([name]) => name !== this.across), this.up, value => (this.up = value), () => this.redraw()));
    const rest = names.filter(name => name !== this.across && name !== this.up);
    if (rest.length > 0) {
      const choices: [string, string][] = [['best', `best over ${rest.join(', ')}`], ['now', `${rest.join(', ')} of now`]];
      out.push(select('other parameters', choices, this.rest, value => (this.rest = value as Rest), () => this.redraw()));
    }
    return out;
  }

  private picture(scene: Scene, kind: string, rates: boolean): SVGElement {
    if (kind === HEAT) {
      return heat(scene, this.across, this.up, this.rest, rates);
    }
    if (kind === PARALLEL) {
      return parallel(scene, rates);
    }
    return kind === ROOF ? roofline(scene) : lines(scene, kind, rates);
  }

  /** What colours mean, where they mean something. */
  private legend(chart: Chart, kind: string): HTMLElement[] {
    if (kind !== HEAT && kind !== PARALLEL) {
      return [];
    }
    const used = new Set(chart.points.filter(point => point.seconds !== null).map(point => (point.step < 0 ? 5 : point.step)));
    const swatches = [...used].sort().map(step => make('span', {}, make('b', { class: `tbx-swatch tbx-step${step}` }), STEP_NAMES[step] ?? ''));
    const why = chart.alike ? [] : [make('span', { class: 'tbx-quiet' }, 'positions compute more or less than each other: their times have no colour')];
    return [make('div', { class: 'tbx-legend' }, ...swatches, ...why)];
  }
}

function select(label: string, choices: readonly [string, string][], now: string, chosen: (value: string) => void, after: () => void): HTMLSelectElement {
  const out = make('select', { 'aria-label': label }, ...choices.map(([value, text]) => make('option', { value }, text)));
  out.value = now;
  out.addEventListener('change', () => {
    chosen(out.value);
    after();
  });
  return out;
}

function verdict(chart: Chart): HTMLElement[] {
  const leader = chart.points.find(point => point.number === chart.leader);
  const others = chart.others.map(other => {
    const text = other.seconds === null ? other.failure : `${other.time}${other.rate_text === '' ? '' : `, ${other.rate_text}`}${other.to_best === '' ? '' : ` (${other.to_best})`}`;
    return make('p', { class: 'tbx-say' }, `${other.name}: ${text}.`);
  });
  if (leader === undefined || chart.points.length < 2) {
    return others;
  }
  const text = chart.decided
    ? `Fastest: ${leader.label}, ${leader.time}.`
    : `Fastest so far: ${leader.label}, ${leader.time}; what runs of one position differ by could explain that.`;
  return [make('p', { class: `tbx-say ${chart.decided ? 'tbx-tone-good' : 'tbx-quiet'}` }, text), ...others];
}

function table({ chart, here }: Scene): HTMLElement {
  const row = (cells: readonly string[], now: boolean): HTMLElement => make('tr', now ? { class: 'tbx-now' } : {}, ...cells.map(text => make('td', {}, text)));
  const rows = chart.points.map(point =>
    row([String(point.number), point.label, point.seconds === null ? '-' : point.time, point.rate_text || '-', point.runs || '-', point.to_best, point.flagged || point.failure], point.number === here)
  );
  rows.push(...chart.refused.filter(each => !chart.points.some(point => point.label === each.label)).map(each => row(['', each.label, '-', '-', '-', each.state, each.why], false)));
  rows.push(...chart.others.map(other => row(['', other.name, other.time || '-', other.rate_text || '-', '', other.to_best, other.failure], false)));
  const head = make('tr', {}, ...['', 'position', 'time', 'rate', 'runs', 'beside the fastest', 'note'].map(text => headElement(text)));
  const out = make('table', { class: 'tbx-table' }, make('thead', {}, head), make('tbody', {}, ...rows));
  return make('details', { class: 'tbx-method' }, make('summary', {}, `Table of ${rows.length} position${rows.length === 1 ? '' : 's'}`), make('div', { class: 'tbx-wide', tabindex: '0' }, out));
}

/** A line of the newest medians, small enough for the header. */
export function sparkline(chart: Chart | null, now: number | null): SVGElement | null {
  const points = (chart?.points ?? []).filter(point => point.seconds !== null).slice(-24);
  if (points.length < 2) {
    return null;
  }
  const most = Math.max(...points.map(point => point.seconds!));
  const at = points.map((point, k) => `${(2 + (76 * k) / (points.length - 1)).toFixed(1)},${(18 - (15 * point.seconds!) / most).toFixed(1)}`);
  const said = `times of the last ${points.length} positions: ${points.map(point => point.time).join(', ')}`;
  const here = points.findIndex(point => point.number === now);
  const dot = here < 0 ? [] : [draw('circle', { cx: at[here]!.split(',')[0]!, cy: at[here]!.split(',')[1]!, r: 2.5 })];
  return draw('svg', { width: 80, height: 20, class: 'tbx-spark', role: 'img', 'aria-label': said }, draw('title', {}, said), draw('polyline', { points: at.join(' ') }), ...dot);
}
