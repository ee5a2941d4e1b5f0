/** The button of a bench's sweep, and what it says of how far that is. */

import { make, write } from '../dom';
import { Host } from './data';
import { SweepData } from './state';

export class SweepControl {
  readonly button = make('button', { type: 'button', class: 'tbx-button tbx-sweep', hidden: '' });
  readonly said = make('span', { class: 'tbx-sweep-said', role: 'status', 'aria-live': 'off', hidden: '' });
  private readonly text = make('span', { class: 'tbx-chip' });
  private readonly progress = make('span', { class: 'tbx-progress', 'aria-hidden': 'true' });
  private running = false;

  constructor(host: Host) {
    this.button.addEventListener('click', () => host.ask({ kind: 'sweep', on: !this.running }));
    this.said.append(this.text, this.progress);
  }

  show(sweep: SweepData | null, live: boolean): void {
    this.button.hidden = sweep === null || !live;
    this.said.hidden = sweep === null || sweep.text === '';
    if (sweep === null) {
      return;
    }
    this.running = sweep.state === 'running';
    write(this.button, sweep.button);
    this.button.title = sweep.title;
    // Read out when it begins, stops and ends, and not with each run.
    this.said.setAttribute('aria-live', this.running ? 'off' : 'polite');
    write(this.text, sweep.text);
    this.text.className = `tbx-chip tbx-tone-${sweep.tone || 'plain'}`;
    this.progress.hidden = sweep.part === null;
    this.progress.style.setProperty('--part', String(sweep.part ?? 0));
  }
}
