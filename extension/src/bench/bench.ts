/** One bench, put together: everything that shows a kernel draws it with this, from a record and a state. */

import { button, focusedNear, make, rove } from '../dom';
import { AgainstChoice } from './against';
import { CAME, SHOW_LINE, SourceLine, tell } from './cell/link';
import { Controls } from './controls';
import { editChoice } from './edit/choice';
import { Edits } from './edit/edits';
import { Ask, Host, Picture } from './data';
import { divider, drag, tellShare } from './divider';
import { Header } from './header';
import { Panes } from './panes';
import { ownKeys } from './keys';
import { NARROW_STYLE, Room } from './room';
import { SaveMenu } from './save';
import { Side } from './side';
import { BenchState, StatusData } from './state';
import { STYLE } from './style';

/** A pane is not read when it is narrower than this; pixels. */
const READABLE = 260;

/** Of the usual stages as many as have room: the last, then the first, then from the end, where decisions are. */
function fitting(names: readonly string[], width: number): string[] {
  if (width > 0 && width < 1.6 * READABLE) {
    return names.slice(-1);
  }
  const room = Math.max(2, Math.floor(width / READABLE));
  if (width <= 0 || names.length <= room) {
    return [...names];
  }
  const keep = new Set([0, names.length - 1]);
  for (let at = Math.floor(names.length / 2); keep.size < room; at = (at + 1) % names.length) {
    keep.add(at);
  }
  return names.filter((_, at) => keep.has(at));
}

export class Bench {
  readonly element: HTMLElement;
  private readonly header: Header;
  private readonly controls: Controls;
  private readonly notes = make('div', { class: 'tbx-notes' });
  private readonly stages = make('div', { class: 'tbx-stages', role: 'toolbar', 'aria-label': 'stages' });
  private readonly said = make('span', { class: 'tbx-said tbx-quiet', role: 'status' });
  private readonly panes: Panes;
  private readonly edits: Edits;
  private readonly save: SaveMenu;
  private readonly against: AgainstChoice;
  private readonly side: Side;
  private readonly room: Room;
  private readonly endKeys: () => void;
  /** Whether a person has chosen what is shown: then no change of the room does. */
  private chosen = false;
  private shown: string[] = [];
  private wanted = '';
  private picture: Picture | null = null;
  private drawn: unknown = null;
  private edited = '';
  private notice = '';
  private placed = '';

  constructor(private readonly host: Host) {
    this.header = new Header(host);
    this.controls = new Controls(host);
    this.edits = new Edits(what => host.ask(what));
    this.save = new SaveMenu(what => host.ask(what));
    this.header.element.append(this.save.element);
    this.panes = new Panes({ closed: name => this.toggleStage(name, false), say: text => this.say(text), ask: what => host.ask(what) }, [this.edits]);
    this.against = new AgainstChoice(what => host.ask(what), own => this.panes.compareWith(null, own));
    this.side = new Side(number => host.ask({ kind: 'restore', number }), tab => host.ask({ kind: 'look', tab }));
    this.side.element.addEventListener('tbx-ask', event => host.ask({ kind: (event as CustomEvent).detail } as Ask));
    for (const what of ['tbx-line', 'tbx-pin']) {
      this.side.element.addEventListener(what, event => this.panes.lightLine(Number((event as CustomEvent).detail), what === 'tbx-pin'));
    }
    const bar = divider('width of the tabs', by => {
      const whole = this.element.clientWidth;
      const width = Math.max(220, Math.min(whole - 260, this.side.element.offsetWidth - by));
      this.side.element.style.flexBasis = `${width}px`;
      tellShare(bar, 1 - width / whole);
    });
    tellShare(bar, 0.7);
    const body = make('div', { class: 'tbx-body' }, this.panes.element, bar, this.side.element);
    const grip = make('div', { class: 'tbx-grip', 'aria-hidden': 'true', title: 'drag to make the bench taller' });
    drag(grip, by => (this.element.style.height = `${Math.max(320, this.element.offsetHeight + by)}px`), true);
    this.element = make(
      'div', { class: 'tbx', role: 'region' },
      make('style', {}, STYLE + NARROW_STYLE), this.header.element, this.controls.element, this.notes, this.stages, body, grip
    );
    this.room = new Room(this.element, this.side.element, width => this.fit(width));
    this.endKeys = ownKeys(this.element);
    this.element.addEventListener(SHOW_LINE, event => this.panes.pinLine((event as CustomEvent<SourceLine>).detail));
  }

  dispose(): void {
    this.endKeys();
    this.header.dispose();
    this.panes.dispose();
    this.room.dispose();
  }

  show(picture: Picture): void {
    this.picture = picture;
    const state = picture.state;
    this.element.setAttribute('aria-label', `workbench of ${state.kernel}`);
    // By these an editor finds the benches of its cell.
    Object.assign(this.element.dataset, { bench: state.id, file: picture.record?.source_file ?? '' });
    this.tellPlace();
    this.header.show(state);
    this.controls.element.hidden = !state.live;
    this.controls.show(state);
    this.edits.show(state);
    this.save.show(picture);
    if (state.notice !== '' && state.notice !== this.notice) {
      this.say(state.notice);
    }
    this.notice = state.notice;
    this.showNotes(state);
    if (state.shown.join() !== this.wanted) {
      // What the kernel's side shows by itself, or was asked for by a program, is followed.
      this.wanted = state.shown.join();
      this.shown = state.asked ? [...state.shown] : fitting(state.shown, this.room.forPanes);
      this.chosen = state.asked;
    }
    this.side.show(state, picture.apart);
    const edits = JSON.stringify(state.edits);
    if (edits !== this.edited && this.drawn === picture.record) {
      this.stageBar(picture);
    }
    this.edited = edits;
    this.panes.tell(picture);
    this.panes.compareWith(picture.other ?? null, this.against.show(state));
    if (this.drawn !== picture.record) {
      this.drawn = picture.record;
      this.drawStages();
    }
  }

  /** Say what the kernel's side does; nothing else has changed. */
  showStatus(status: StatusData): void {
    this.header.showStatus(status);
  }

  private drawStages(): void {
    const picture = this.picture;
    if (picture === null || picture.record === null) {
      return;
    }
    this.stageBar(picture);
    this.panes.show(picture.record, this.shown, picture.state.titles);
  }

  private stageBar(picture: Picture): void {
    const held = new Set(picture.record?.stages.map(stage => stage.name));
    const names = picture.state.stages.filter(name => held.has(name) || picture.state.live);
    const focusAgain = this.focusInBar();
    const toggles = names.map(name => {
      const out = button(name, `show or hide the stage ${name}`, () => this.toggleStage(name, !this.shown.includes(name)));
      out.setAttribute('aria-pressed', String(this.shown.includes(name)));
      out.classList.toggle('tbx-edited', picture.state.edits.edited.includes(name));
      return out;
    });
    this.stages.replaceChildren(
      ...toggles, ...this.against.elements, ...editChoice(picture.state.edits, what => this.host.ask(what)),
      ...this.panes.tools, this.said
    );
    rove(this.stages, toggles);
    focusAgain();
  }

  /** What gives the focus back to the same part of the bar when that is made anew. It holds no element of the old bar. */
  private focusInBar(): () => void {
    const active = focusedNear(this.stages);
    const at = this.against.elements.findIndex(each => each === active);
    if (at >= 0) {
      return () => this.against.elements[at]?.focus();
    }
    const text = this.stages.contains(active) ? active?.textContent : null;
    const again = active?.classList.contains('tbx-edit-choice')
      ? () => this.stages.querySelector<HTMLElement>('.tbx-edit-choice')
      : () => [...this.stages.querySelectorAll('button')].find(each => each.textContent === text);
    return () => (text === null ? undefined : again()?.focus());
  }

  /** Say once that this bench stands in a page: its first state is often drawn before. */
  private tellPlace(): void {
    const file = this.element.dataset['file'] ?? '';
    if (this.element.isConnected && file !== this.placed) {
      this.placed = file;
      tell(this.element, CAME, null);
    }
  }

  private fit(width: number): void {
    this.tellPlace();
    this.side.fold(this.room.folded);
    const names = fitting(this.picture?.state.shown ?? [], width);
    if (!this.chosen && names.join() !== this.shown.join()) {
      this.shown = names;
      this.drawStages();
    }
  }

  private toggleStage(name: string, on: boolean): void {
    this.chosen = true;
    const order = this.picture?.state.stages ?? [];
    const now = new Set(this.shown);
    if (on) {
      now.add(name);
    } else {
      now.delete(name);
    }
    this.shown = order.filter(each => now.has(each));
    const stage = this.picture?.record?.stages.find(each => each.name === name);
    if (on && (stage === undefined || stage.pending)) {
      // It takes another program: only then does the kernel's side have to know.
      this.host.ask({ kind: 'stages', names: this.shown });
    }
    this.drawStages();
  }

  private showNotes(state: BenchState): void {
    const parts: HTMLElement[] = [];
    if (state.problem !== null && !this.edits.tells(state.problem)) {
      parts.push(make('div', { class: 'tbx-problem', role: 'alert' }, make('strong', {}, state.problem.what), make('pre', {}, state.problem.text)));
    }
    if (state.stale !== '') {
      parts.push(make('p', { class: 'tbx-tone-warn' }, state.stale));
    }
    parts.push(...state.notes.map(note => make('p', { class: 'tbx-quiet' }, note)));
    this.element.classList.toggle('tbx-stale', state.stale !== '');
    const text = parts.map(part => part.textContent).join('\n');
    if (text !== this.notes.dataset['text']) {
      this.notes.dataset['text'] = text;
      this.notes.replaceChildren(...parts);
    }
  }

  private say(text: string): void {
    this.said.textContent = text;
  }
}

