/** Stages side by side. Pointing at a line, or moving to it by keyboard, marks its kin in the others. */

import { make, rove } from '../../dom';
import { CompileRecord, StageRecord } from '../../record';
import { Panel } from '../panel';
import { descendants, openedFirst, origins } from './links';
import { Pane } from './pane';

class StageView {
  private readonly panes = new Map<string, Pane>();
  private readonly kin = new Map<string, Map<number, number[]>>();
  private readonly row = make('div', { class: 'tb-panes' });

  constructor(
    private readonly record: CompileRecord,
    element: HTMLElement
  ) {
    const open = openedFirst(record.stages);
    const bar = make('div', { class: 'tb-toolbar', role: 'toolbar', 'aria-label': 'Stages shown side by side' });
    const buttons = record.stages.map(stage => this.button(stage, open.includes(stage.name)));
    bar.append(...buttons);
    rove(bar, buttons);
    element.append(bar, this.row);
  }

  dispose(): void {
    this.panes.forEach(pane => pane.dispose());
  }

  private button(stage: StageRecord, open: boolean): HTMLElement {
    const button = make('button', { type: 'button', 'aria-pressed': String(open) }, stage.name);
    button.addEventListener('click', () => {
      const show = button.getAttribute('aria-pressed') !== 'true';
      button.setAttribute('aria-pressed', String(show));
      this.toggle(stage, show);
    });
    this.toggle(stage, open);
    return button;
  }

  private toggle(stage: StageRecord, show: boolean): void {
    if (!show) {
      this.panes.get(stage.name)?.dispose();
      this.panes.get(stage.name)?.element.remove();
      this.panes.delete(stage.name);
      return;
    }
    const pane = new Pane(stage, at => this.link(stage, at));
    this.panes.set(stage.name, pane);
    const order = this.record.stages.map(each => each.name);
    const after = [...this.panes.values()]
      .filter(each => order.indexOf(each.stage.name) > order.indexOf(stage.name))
      .sort((a, b) => order.indexOf(a.stage.name) - order.indexOf(b.stage.name))[0];
    this.row.insertBefore(pane.element, after?.element ?? null);
  }

  private link(stage: StageRecord, at: number): void {
    const sources = at < 0 ? [] : origins(this.record, stage, at);
    for (const pane of this.panes.values()) {
      const map = this.kinOf(pane.stage);
      const lines = sources.flatMap(source => map.get(source) ?? []);
      pane.mark(lines, pane.stage !== stage);
    }
  }

  private kinOf(stage: StageRecord): Map<number, number[]> {
    let found = this.kin.get(stage.name);
    if (found === undefined) {
      found = descendants(this.record, stage);
      this.kin.set(stage.name, found);
    }
    return found;
  }
}

export const stages: Panel = {
  name: 'stages',
  title: 'Stages',
  applies: ({ record }) => record.stages.length > 0,
  render: ({ record }, element) => {
    const view = new StageView(record, element);
    return () => view.dispose();
  }
};
