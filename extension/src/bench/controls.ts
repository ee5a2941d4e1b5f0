/** Sliders, fields and choices. They only say what is wanted; what is so comes back with the next state. */

import { focusedNear, freshId, make, onKey, write } from '../dom';
import { Host } from './data';
import { BenchState, ControlData as Control } from './state';

interface Shown {
  readonly element: HTMLElement;
  update(control: Control): void;
}

export class Controls {
  readonly element = make('div', { class: 'tbx-controls' });
  private readonly knobs = make('div', { class: 'tbx-knobs' });
  private readonly more = make('details', { class: 'tbx-more', hidden: '' }, make('summary', {}, 'Schedule'));
  private readonly choices = make('div', { class: 'tbx-knobs' });
  private shown = new Map<string, Shown>();
  private shape = '';
  /** A state that was under way when a person moved a control must not move it back: moves are counted. */
  private readonly view = freshId('tbx-view');
  private sent = 0;
  private heard = 0;

  constructor(private readonly host: Host) {
    this.more.append(this.choices);
    this.element.append(this.knobs, this.more);
  }

  /** Draw the controls of a state; it says which moves it has in it, and which controls are not here, and why. */
  show({ controls, idle, heard, status }: BenchState): void {
    // What was stopped never comes: then controls go back to what is shown.
    this.heard = status.phase === 'cancelled' ? this.sent : (heard[this.view] ?? 0);
    const shape = JSON.stringify([controls.map(control => [control.name, control.labels, control.kind]), idle]);
    if (shape !== this.shape) {
      this.shape = shape;
      const focused = [...this.shown].find(([, one]) => one.element.contains(focusedNear(one.element)))?.[0] ?? '';
      this.build(controls);
      if (idle !== '') {
        this.knobs.append(make('span', { class: 'tbx-quiet' }, idle));
      }
      this.shown.get(focused)?.element.querySelector<HTMLElement>('input, select')?.focus();
    }
    controls.forEach(control => this.shown.get(control.name)?.update(control));
    const set = controls.filter(control => control.kind === 'choice' && control.index > 0).length;
    const summary = this.more.querySelector('summary');
    if (summary !== null) {
      write(summary, set === 0 ? 'Schedule: as written' : `Schedule: ${set} chosen here`);
    }
  }

  private build(controls: readonly Control[]): void {
    this.shown = new Map();
    this.knobs.replaceChildren();
    this.choices.replaceChildren();
    for (const control of controls) {
      const made = control.labels.length === 0 ? this.field(control) : control.kind === 'choice' ? this.choice(control) : this.slider(control);
      this.shown.set(control.name, made);
      (control.kind === 'choice' ? this.choices : this.knobs).append(made.element);
    }
    this.more.hidden = this.choices.children.length === 0;
  }

  private ask(control: Control, index: number, text: string): number {
    this.sent += 1;
    this.host.ask({ kind: 'set', name: control.name, index, text, view: this.view, number: this.sent });
    return this.sent;
  }

  private slider(control: Control): Shown {
    const id = freshId('tbx-knob');
    const last = control.labels.length - 1;
    const input = make('input', { id, type: 'range', min: '0', max: String(last), step: '1' });
    const value = make('output', { for: id });
    let said = -1;
    const say = (at: number): void => {
      if (at === said) {
        return;
      }
      said = at;
      value.textContent = control.labels[at] ?? '';
      // What a screen reader says is the value, not its place in the list.
      input.setAttribute('aria-valuetext', `${control.labels[at] ?? ''}, ${at + 1} of ${last + 1}`);
    };
    let moved = 0;
    input.addEventListener('input', () => {
      say(Number(input.value));
      moved = this.ask(control, Number(input.value), '');
    });
    onKey(input, event => event.stopPropagation());
    const element = make('div', { class: 'tbx-knob' }, make('label', { for: id }, control.name), input, value);
    return {
      element,
      update: now => {
        if (moved <= this.heard) {
          input.value = String(now.index);
          say(now.index);
        }
      }
    };
  }

  private choice(control: Control): Shown {
    const id = freshId('tbx-choice');
    const select = make('select', { id }, ...control.labels.map((label, at) => make('option', { value: String(at) }, label)));
    let moved = 0;
    select.addEventListener('change', () => (moved = this.ask(control, Number(select.value), '')));
    return {
      element: make('div', { class: 'tbx-knob' }, make('label', { for: id }, control.name), select),
      update: now => {
        if (moved <= this.heard) {
          select.value = String(now.index);
        }
      }
    };
  }

  private field(control: Control): Shown {
    const id = freshId('tbx-field');
    const input = make('input', { id, type: 'text', placeholder: 'a value of the call', autocomplete: 'off' });
    input.addEventListener('change', () => void this.ask(control, -1, input.value));
    onKey(input, event => event.stopPropagation());
    return {
      element: make('div', { class: 'tbx-knob' }, make('label', { for: id }, control.name), input),
      update: now => {
        if (focusedNear(input) !== input) {
          input.value = now.text;
        }
      }
    };
  }
}
