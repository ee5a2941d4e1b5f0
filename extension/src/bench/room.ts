/**
 * How much room a bench has, and what follows: as many stages as can be read, and in a narrow place (a panel beside
 * the notebook) the tabs below the panes, folded to their bar until one is chosen.
 */

import { elementOf } from '../dom';

/** Beside each other tabs and a pane want this, in pixels. */
const NARROW = 760;
/** In a place that is lower than this, controls keep to one row each. */
const SHORT = 430;

export const NARROW_STYLE = `
.tbx-narrow .tbx-body{flex-direction:column}
.tbx-narrow .tbx-body>.tbx-divider{display:none}
.tbx-narrow .tbx-side{flex:0 0 48%!important;max-width:none;border-top:1px solid var(--line)}
.tbx-narrow .tbx-side[data-folded=true]{flex-basis:auto!important}
.tbx-narrow .tbx-side[data-folded=true] .tbx-tab{display:none}
.tbx-narrow .tbx-side[data-folded=true] .tbx-tabs button[aria-selected=true]{box-shadow:none;background:none;color:var(--dim)}
.tbx-narrow .tbx-knobs{gap:0 14px}.tbx-narrow .tbx-knob{min-height:22px}.tbx-narrow .tbx-knob input[type=range]{width:84px}
.tbx-short .tbx-header,.tbx-short .tbx-stages{flex-wrap:nowrap;overflow-x:auto;padding-top:2px;padding-bottom:2px}
.tbx-short .tbx-header>*,.tbx-short .tbx-stages>*{flex-shrink:0}
.tbx-short .tbx-header>.tbx-chips{flex:0 1 auto;flex-wrap:nowrap;min-width:0;overflow:hidden}
.tbx-short .tbx-knobs{gap:0 14px}.tbx-short .tbx-knob{min-height:22px}.tbx-short .tbx-knob input[type=range]{width:84px}
.tbx-short .tbx-controls{max-height:50px;padding-top:1px;padding-bottom:1px}
.tbx-narrow .tbx-header{padding:3px 8px}.tbx-narrow .tbx-pane{min-width:200px}
`;

export class Room {
  private width = 0;
  private readonly observer = new ResizeObserver(() => this.measure());

  /** `changed` is called with the pixels that the panes have, whenever these or the fold of the tabs have changed. */
  constructor(
    private readonly bench: HTMLElement,
    private readonly side: HTMLElement,
    private readonly changed: (width: number) => void
  ) {
    side.dataset['folded'] = 'true';
    // Before the tab itself hears of it: what was selected tells whether it closes.
    side.addEventListener('click', event => this.fold(event), true);
    this.observer.observe(bench);
  }

  dispose(): void {
    this.observer.disconnect();
  }

  /** The pixels that the panes have; 0 while the bench stands nowhere. */
  get forPanes(): number {
    return this.width < NARROW ? this.width : this.width * 0.68;
  }

  /** Whether the tabs are folded to their bar. */
  get folded(): boolean {
    return this.width > 0 && this.width < NARROW && this.side.dataset['folded'] === 'true';
  }

  private measure(): void {
    const width = this.bench.clientWidth;
    this.bench.classList.toggle('tbx-short', width > 0 && this.bench.clientHeight < SHORT);
    if (width > 0 && width !== this.width) {
      this.width = width;
      this.bench.classList.toggle('tbx-narrow', width < NARROW);
      this.changed(this.forPanes);
    }
  }

  private fold(event: Event): void {
    const tab = elementOf(event.target)?.closest('[role=tab]') ?? null;
    if (tab !== null) {
      const open = this.side.dataset['folded'] !== 'true';
      this.side.dataset['folded'] = String(open && tab.getAttribute('aria-selected') === 'true');
      this.changed(this.forPanes);
    }
  }
}
