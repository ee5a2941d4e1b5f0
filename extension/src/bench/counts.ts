/** Figures of lines beside the lines: one counter at a time, and what the machine itself has beside them. */

import { make } from '../dom';
import { Picture } from './data';
import { ExtraBench, Gutter, GutterCell, PaneButton, PaneExtra, PaneView } from './pane/door';
import { CountWay, GutterData } from './state';

const NONE = '';
/** In front of the name of a way to count that has not been gone yet. */
const WAY = '!';

export class Counts implements PaneExtra {
  readonly tool = make('span', { class: 'tbx-counts' });
  private readonly select = make('select', { 'aria-label': 'figure beside the lines' });
  private data: readonly GutterData[] = [];
  private chosen = NONE;
  private ways: readonly CountWay[] = [];
  /** What the list offers now: it is made anew only when that has changed, for somebody may have it open. */
  private offered = '';
  /** Whether figures are on their way: the first that was not there before is then shown. */
  private awaited = false;
  /** Gutters that are no choice, such as control codes, are shown unless they were switched off. */
  private readonly off = new Set<string>();

  constructor(private readonly bench: ExtraBench) {
    this.tool.append(make('span', { class: 'tbx-quiet' }, 'beside lines'), this.select);
    this.select.addEventListener('change', () => this.choose(this.select.value));
  }

  shown(picture: Picture): void {
    const before = new Set(this.choices.map(each => each.name));
    this.data = picture.gutters;
    const choices = this.choices;
    const news = choices.find(each => !before.has(each.name));
    if (this.awaited && news !== undefined) {
      this.awaited = false;
      this.chosen = news.name;
    }
    this.ways = picture.state.live ? picture.state.countable : [];
    this.tool.hidden = choices.length + this.ways.length === 0;
    const rows = [
      [NONE, 'nothing', ''], ...choices.map(each => [each.name, each.title, each.says]),
      ...this.ways.map(each => [WAY + each.name, `${each.title} \u2026`, ''])
    ];
    const offered = JSON.stringify(rows);
    if (offered !== this.offered) {
      this.offered = offered;
      this.select.replaceChildren(...rows.map(([value = '', text = '', title = '']) => make('option', { value, title }, text)));
    }
    // A counter that this picture lacks stays chosen: the next one may have it.
    this.select.value = choices.some(each => each.name === this.chosen) ? this.chosen : NONE;
  }

  gutters(pane: PaneView): Gutter[] {
    return this.data.flatMap(each => {
      const wanted = each.choice ? each.name === this.chosen : !this.off.has(each.name);
      const lines = each.stages[pane.stage.name];
      return wanted && lines !== undefined ? [gutter(each, lines)] : [];
    });
  }

  buttons(pane: PaneView): PaneButton[] {
    const out: PaneButton[] = this.data
      .filter(each => !each.choice && each.stages[pane.stage.name] !== undefined)
      .map(each => ({ text: '\u2261', name: each.title, key: 'c', pressed: !this.off.has(each.name), press: () => this.toggle(each.name) }));
    if (this.choices.length > 0) {
      out.push({ text: '', name: 'next figure', key: 'f', press: () => this.step(1) });
      out.push({ text: '', name: 'figure before', key: 'F', press: () => this.step(-1) });
    }
    return out;
  }

  private get choices(): GutterData[] {
    return this.data.filter(each => each.choice);
  }

  private toggle(name: string): void {
    if (!this.off.delete(name)) {
      this.off.add(name);
    }
    this.bench.redraw();
  }

  private step(by: number): void {
    const names = [NONE, ...this.choices.map(each => each.name)];
    const now = Math.max(0, names.indexOf(this.chosen));
    this.choose(names[(now + by + names.length) % names.length]!);
  }

  private choose(name: string): void {
    if (name.startsWith(WAY)) {
      this.select.value = this.chosen;
      this.awaited = true;
      this.bench.say('Counting \u2026');
      this.bench.ask({ kind: 'count', name: name.slice(WAY.length) });
      return;
    }
    this.chosen = name;
    this.select.value = name;
    const data = this.choices.find(each => each.name === name);
    this.bench.say(data === undefined ? 'No figure beside the lines.' : `${data.total}. ${data.says}`);
    this.bench.redraw();
  }
}

function gutter(data: GutterData, lines: readonly number[]): Gutter {
  const cells: (GutterCell | null)[] = data.cells.map(cell => ({ text: cell.text, weight: cell.shade / 100, says: cell.says }));
  const columns = lines.reduce((most, number) => Math.max(most, cells[number]?.text.length ?? 0), 0);
  return {
    name: data.name,
    title: data.title,
    columns,
    // What a person has chosen is shown in the narrowest pane too.
    narrow: data.choice ? columns : data.narrow,
    total: data.total,
    says: data.says,
    cell: line => cells[lines[line] ?? -1] ?? null
  };
}
