/** The header of a pane: the stage with its facts, what gutters and the difference add up to, and the buttons. */

import { focusedNear, make } from '../../dom';
import { StageRecord } from '../../record';
import { Gutter, PaneButton } from './door';

export class Head {
  readonly element: HTMLElement;
  private readonly totals = make('span', { class: 'tbx-totals' });
  private readonly delta = make('span', { class: 'tbx-delta', role: 'note' });
  private readonly buttons = make('span', { class: 'tbx-icons' });

  constructor(private readonly stage: StageRecord, label: string, title: string, count: number, search: readonly HTMLElement[]) {
    const lines = `${count} line${count === 1 ? '' : 's'}`;
    const ms = stage.seconds > 0 ? [`${Number((stage.seconds * 1000).toPrecision(2))} ms`] : [];
    const said = [title, stage.pending ? 'not made yet' : lines, ...ms].join(' \u00b7 ');
    this.element = make(
      'header', { class: 'tbx-head' }, make('strong', { id: label }, stage.name),
      make('span', { class: 'tbx-quiet tbx-facts', title: said }, said), this.totals, this.delta, ...search, this.buttons
    );
  }

  /** What the difference amounts to. */
  changed({ text, told }: { readonly text: string; readonly told: string }): void {
    this.delta.textContent = text;
    this.delta.title = told;
    this.delta.setAttribute('aria-label', told);
  }

  /** What each gutter adds up to over the whole text. */
  showTotals(gutters: readonly Gutter[]): void {
    const parts = gutters.filter(gutter => gutter.total !== '');
    this.totals.replaceChildren(...parts.map(gutter => make('span', { 'data-gutter': gutter.name, title: gutter.says }, gutter.total)));
  }

  showButtons(buttons: readonly PaneButton[]): void {
    const focused = [...this.buttons.children].indexOf(focusedNear(this.element) ?? this.element);
    const made = buttons.filter(each => each.text !== '').map(each => {
      const said = { title: `${each.name} (${each.key})`, 'aria-label': `${each.name}: ${this.stage.name}` };
      const out = make('button', { type: 'button', class: 'tbx-icon', ...said }, each.text);
      if (each.pressed !== undefined) {
        out.setAttribute('aria-pressed', String(each.pressed));
      }
      out.addEventListener('click', () => each.press());
      return out;
    });
    this.buttons.replaceChildren(...made);
    made[focused]?.focus();
  }
}
