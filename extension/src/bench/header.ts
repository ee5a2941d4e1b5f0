/** What stays in view: the kernel, its target, what is going on, the figures of now, and the buttons. */

import { button, make, write } from '../dom';
import { sparkline } from './chart';
import { Host } from './data';
import { BenchState, Chip, StatusData } from './state';
import { SweepControl } from './sweep';

/** What is over sooner has no clock: it would push what stands beside it, and with that the panes, to and fro. */
const CLOCK_MS = 1000;

export class Header {
  readonly element: HTMLElement;
  private readonly name = make('strong', { class: 'tbx-name' });
  private readonly target = make('select', { 'aria-label': 'target', class: 'tbx-target' });
  private readonly status = make('span', { class: 'tbx-status', role: 'status', 'aria-live': 'polite' });
  private readonly clock = make('span', { class: 'tbx-clock', 'aria-hidden': 'true' });
  private readonly progress = make('span', { class: 'tbx-progress', 'aria-hidden': 'true' });
  private readonly chips = make('span', { class: 'tbx-chips' });
  private readonly spark = make('span', { class: 'tbx-spark-place' });
  private readonly buttons = make('span', { class: 'tbx-buttons', role: 'group', 'aria-label': 'work' });
  private readonly run: HTMLElement;
  private readonly check: HTMLElement;
  private readonly sweep: SweepControl;
  private since = 0;
  private ticking: number | null = null;
  private figures = '';

  constructor(private readonly host: Host) {
    this.run = this.toggle('Measure', 'run', 'time each position, in a process of its own');
    this.check = this.toggle('Check', 'check', 'compare every element with the reference');
    const again = button('Again', 'another run of this position; go on after a stop', () => host.ask({ kind: 'again' }));
    const stop = button('Stop', 'drop what is running or waiting', () => host.ask({ kind: 'stop' }));
    this.sweep = new SweepControl(host);
    this.buttons.append(this.run, this.check, again, this.sweep.button, stop);
    this.target.addEventListener('change', () => host.ask({ kind: 'target', text: this.target.value }));
    this.element = make('div', { class: 'tbx-header' }, this.name, this.target, this.status, this.sweep.said, this.chips, this.spark, this.buttons);
  }

  dispose(): void {
    this.tick(null);
  }

  show(state: BenchState): void {
    write(this.name, state.kernel);
    if ([...this.target.options].map(option => option.value).join() !== state.targets.join()) {
      this.target.replaceChildren(...state.targets.map(name => make('option', { value: name }, name)));
    }
    this.target.value = state.target;
    this.target.disabled = !state.live;
    this.buttons.hidden = !state.live;
    this.run.setAttribute('aria-pressed', String(state.run));
    this.check.setAttribute('aria-pressed', String(state.check));
    this.showStatus(state.status);
    this.sweep.show(state.sweep, state.live);
    // What is put in anew is laid out anew, with all that stands beside it.
    const figures = JSON.stringify([state.chips, state.chart?.points.map(point => [point.number, point.seconds, point.time]), state.here]);
    if (figures !== this.figures) {
      this.figures = figures;
      this.chips.replaceChildren(...state.chips.map(chipElement));
      const line = sparkline(state.chart, state.here);
      this.spark.replaceChildren(...(line === null ? [] : [line]));
    }
  }

  showStatus(status: StatusData): void {
    // Set only when it has changed: a screen reader reads what is set.
    const said = make('span', { class: `tbx-chip tbx-tone-${status.tone || 'plain'}` }, status.text);
    if (this.status.firstChild?.textContent !== status.text) {
      this.status.replaceChildren(said, this.progress, this.clock);
    } else if (this.status.firstElementChild !== null) {
      this.status.firstElementChild.className = said.className;
    }
    this.progress.hidden = status.part === null;
    this.progress.style.setProperty('--part', String(status.part ?? 0));
    this.tick(status.elapsed);
  }

  private tick(elapsed: number | null): void {
    if (this.ticking !== null) {
      window.clearInterval(this.ticking);
      this.ticking = null;
    }
    if (elapsed === null) {
      write(this.clock, '');
      return;
    }
    this.since = Date.now() - elapsed * 1000;
    const say = (): void => {
      const past = Date.now() - this.since;
      write(this.clock, past < CLOCK_MS ? '' : `${(past / 1000).toFixed(1)} s`);
    };
    say();
    this.ticking = window.setInterval(say, 200);
  }

  private toggle(name: string, what: 'run' | 'check', title: string): HTMLElement {
    const out = button(name, title, () => {
      const on = out.getAttribute('aria-pressed') !== 'true';
      out.setAttribute('aria-pressed', String(on));
      this.host.ask({ kind: 'toggle', name: what, on });
    });
    out.setAttribute('aria-pressed', 'false');
    return out;
  }
}

function chipElement(chip: Chip): HTMLElement {
  return make('span', { class: `tbx-chip tbx-tone-${chip.tone || 'plain'}` }, chip.text);
}
