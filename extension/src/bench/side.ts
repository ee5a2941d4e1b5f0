/** The tabs beside the panes: the chart, and everything that is said of the kernel in tables. */

import { focusedNear, freshId, make, rove } from '../dom';
import { blockElements } from './blocks';
import { ChartView } from './chart';
import { Apart } from './data';
import { Kept } from './pictures/kept';
import { BenchState, TabData } from './state';

export class Side {
  readonly element = make('aside', { class: 'tbx-side' });
  private readonly bar = make('div', { class: 'tbx-tabs', role: 'tablist', 'aria-label': 'about this kernel' });
  private readonly body = make('div', { class: 'tbx-tab', role: 'tabpanel', tabindex: '0', id: freshId('tbx-tab') });
  private readonly chart: ChartView;
  private chosen = '';
  private shape = '';
  private tabs: readonly TabData[] = [];
  private state: BenchState | null = null;
  private apart: Apart = {};
  private readonly kept = new Kept();
  private drawn = '';
  private drawnApart: unknown = null;
  private folded = false;

  /** `looked` is told which tab is open. */
  constructor(restore: (number: number) => void, private readonly looked: (tab: string) => void) {
    this.chart = new ChartView(restore);
    this.body.addEventListener('toggle', () => this.reach(), { capture: true }); // a fold has no width before
    this.element.append(this.bar, this.body);
  }

  show(state: BenchState, apart: Apart = this.apart): void {
    this.state = state;
    this.apart = apart;
    this.tabs = state.tabs;
    if (!this.tabs.some(tab => tab.name === this.chosen)) {
      this.chosen = this.tabs[0]?.name ?? '';
    }
    const shape = JSON.stringify([this.tabs.map(tab => [tab.name, tab.title, tab.badge, tab.tone]), this.chosen]);
    if (shape !== this.shape) {
      this.shape = shape;
      this.drawBar();
    }
    this.drawBody();
  }

  /** Whether only the bar of the tabs is seen: nothing is drawn into a body that nobody sees. */
  fold(on: boolean): void {
    if (on !== this.folded) {
      this.folded = on;
      this.drawBody();
    }
  }

  /** Open a tab by its name. */
  choose(name: string): void {
    if (name !== this.chosen) {
      this.looked(name);
    }
    this.chosen = name;
    if (this.state !== null) {
      this.show(this.state);
    }
  }

  private drawBar(): void {
    const focused = this.bar.contains(focusedNear(this.bar));
    const made = this.tabs.map(tab => {
      const badge = tab.badge === '' ? [] : [make('span', { class: `tbx-badge tbx-tone-${tab.tone || 'plain'}` }, tab.badge)];
      const selected = String(tab.name === this.chosen);
      const out = make('button', { type: 'button', role: 'tab', 'aria-selected': selected, 'aria-controls': this.body.id }, tab.title, ...badge);
      out.addEventListener('click', () => this.choose(tab.name));
      return out;
    });
    this.bar.replaceChildren(...made);
    const now = this.tabs.findIndex(tab => tab.name === this.chosen);
    rove(this.bar, made, at => this.choose(this.tabs[at]?.name ?? ''));
    made.forEach((tab, at) => (tab.tabIndex = at === now ? 0 : -1));
    if (focused) {
      made[now]?.focus();
    }
  }

  private drawBody(): void {
    if (this.folded) {
      return;
    }
    const tab = this.tabs.find(each => each.name === this.chosen);
    if (tab?.name === 'chart' && this.state !== null) {
      this.chart.show(this.state);
    }
    // A status comes ten times a second; what is read and operated stays where nothing of it has changed.
    const [text, apart] = [JSON.stringify([tab?.name, tab?.blocks]), this.apart[this.chosen] ?? null];
    if (text === this.drawn && apart === this.drawnApart) {
      return;
    }
    [this.drawn, this.drawnApart] = [text, apart];
    const scroll = this.body.scrollTop;
    const parts = [...(tab?.blocks ?? []), ...(apart ?? [])].flatMap(block => blockElements(block, this.kept));
    this.body.replaceChildren(...(tab?.name === 'chart' ? [this.chart.element] : []), ...parts);
    this.body.scrollTop = scroll;
    this.reach();
  }

  /** What is cut off is reached without a pointer too. */
  private reach(): void {
    for (const wide of this.body.querySelectorAll<HTMLElement>('.tbx-wide')) {
      if (wide.scrollWidth > wide.clientWidth) {
        wide.tabIndex = 0;
      }
    }
  }
}
