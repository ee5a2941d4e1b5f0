/** The panes beside each other: dividers that drag, one that takes all, and lines linked through all of them. */

import { elementOf, make } from '../dom';
import { CompileRecord, StageRecord } from '../record';
import { sourceLine } from './cell/extra';
import { nearestLine, PINNED, SourceLine, tell } from './cell/link';
import { Against } from './against';
import { Ask, Picture } from './data';
import { EXTRAS } from './extras';
import { divider, tellShare } from './divider';
import { Pane } from './pane';
import { ExtraBench, PaneExtra, PaneHost, PaneView } from './pane/door';
import { isTile, linesOf } from './text/lines';
import { densest } from './text/links';

interface PanesHost {
  /** A person closed the pane of a stage, by its button or its key. */
  closed(stage: string): void;
  say(text: string): void;
  ask(what: Ask): void;
}

interface Spot {
  readonly element: Element;
  readonly stage: string;
  readonly line: number;
}

/** Where in the rows of a pane an event happened. */
function spotOf(event: Event): Spot | null {
  const element = elementOf(event.target);
  const row = element?.closest<HTMLElement>('.tbx-row');
  const stage = row?.closest<HTMLElement>('.tbx-pane')?.dataset['stage'];
  return !element || !row || stage === undefined ? null : { element, stage, line: Number(row.dataset['line']) };
}

/** Pixels that a pane keeps when its neighbour is widened. */
const LEAST = 180;

export class Panes implements PaneHost {
  readonly element = make('div', { class: 'tbx-panes' });
  readonly extras: readonly PaneExtra[];
  private panes: Pane[] = [];
  private widths = new Map<string, number>();
  private maximised = '';
  private pin: ReadonlySet<number> | null = null;
  private record: CompileRecord | null = null;
  private before: CompileRecord | null = null;
  private other: CompileRecord | null = null;
  private against: Against = 'before';
  /** Where a pointer is down. */
  private pressed: Spot | null = null;
  private readonly observer = new ResizeObserver(() => this.layout());

  /** `extras` are what this bench adds to its panes, besides what every bench does. */
  constructor(private readonly host: PanesHost, extras: readonly PaneExtra[] = []) {
    const redraw = (): void => {
      this.panes.forEach(pane => pane.renew());
      this.layout();
    };
    const bench: ExtraBench = { say: text => host.say(text), ask: what => host.ask(what), redraw };
    this.extras = [...EXTRAS.map(extra => extra(bench)), ...extras];
    this.observer.observe(this.element);
    this.element.addEventListener('pointerdown', event => (this.pressed = spotOf(event)));
    this.element.addEventListener('pointerup', event => this.released(event));
  }

  /** Choose the line that a pointer was pressed on, where it was drawn anew meanwhile: browsers tell of no click then. */
  private released(event: PointerEvent): void {
    const [from, to] = [this.pressed, spotOf(event)];
    this.pressed = null;
    if (from !== null && to !== null && !from.element.isConnected && from.stage === to.stage && from.line === to.line) {
      this.panes.find(pane => pane.stage.name === to.stage)?.clicked(to.line, event.target);
    }
  }

  /** What stands in the bar above the panes for those that add something to them. */
  get tools(): HTMLElement[] {
    return this.extras.map(extra => extra.tool).filter((tool): tool is HTMLElement => tool !== undefined);
  }

  /** Let those that add something to panes see a picture, before its panes are shown. */
  tell(picture: Picture): void {
    this.extras.forEach(extra => extra.shown?.(picture));
  }

  dispose(): void {
    this.observer.disconnect();
  }

  /** Show these stages of a record. What a reader scrolled, folded and pinned stays where the stage does. */
  show(record: CompileRecord, names: readonly string[], titles: Readonly<Record<string, string>>): void {
    const moved = this.record !== null && this.record !== record && identity(this.record) !== identity(record);
    if (moved) {
      this.before = this.record;
    }
    this.record = record;
    const old = new Map(this.panes.map(pane => [pane.stage.name, pane.reading]));
    const stages = names.map(name => record.stages.find(stage => stage.name === name)).filter((s): s is StageRecord => s !== undefined);
    this.panes = stages.map(stage => new Pane(record, stage, titles[stage.language] ?? stage.language, this, !isTile(stage.language)));
    const parts: Node[] = [];
    this.panes.forEach((pane, at) => {
      if (at > 0) {
        parts.push(this.divider(at));
      }
      parts.push(pane.element);
    });
    if (parts.length === 0) {
      parts.push(make('p', { class: 'tbx-quiet tbx-pending' }, 'No stage is shown: choose one above.'));
    }
    // Each text is laid out and drawn once, when all is known that decides how it looks.
    this.compare(this.against);
    this.panes.forEach(pane => pane.readAs(old.get(pane.stage.name) ?? pane.reading));
    this.relight(null, this.pin ?? new Set(), false);
    this.element.replaceChildren(...parts);
    this.layout();
    this.panes.find(pane => old.get(pane.stage.name)?.focused)?.focus();
  }

  /** Choose what each text is compared with. */
  compare(against: Against): void {
    this.against = against;
    const other = { last: this.before, other: this.other, before: null, nothing: null }[against];
    this.panes.forEach((pane, at) => {
      if (against === 'before') {
        const own = ownLines(pane);
        if (own !== null) {
          pane.compare(own);
          return;
        }
        const previous = this.panes[at - 1];
        const both = previous !== undefined && isTile(previous.stage.language) && isTile(pane.stage.language);
        pane.compare(both ? previous.lines : null);
        return;
      }
      const stage = other?.stages.find(each => each.name === pane.stage.name && !each.pending);
      pane.compare(stage === undefined ? null : linesOf(stage.text), other?.parameters);
    });
    if (against === 'last' && this.before === null) {
      this.host.say('There is no position before this one yet: move a control.');
    }
  }

  /** Choose it, where it is another than now: `other` is a record that the kernel's side was asked for. */
  compareWith(other: CompileRecord | null, against: Against): void {
    const same = against === this.against && (against !== 'other' || other === this.other);
    this.other = other;
    if (!same) {
      this.compare(against);
    }
  }

  say(text: string): void {
    this.host.say(text);
  }

  ask(what: Ask): void {
    this.host.ask(what);
  }

  // -- links
  pointed(pane: PaneView, line: number | null): void {
    const sources = line === null ? this.pin : new Set(pane.kin.sources(line));
    this.relight(pane, sources ?? new Set(), false);
  }

  pinned(pane: PaneView, line: number): void {
    const sources = pane.kin.sources(line);
    if (sources.length === 0) {
      this.letGo();
      this.host.say('This line comes from no line of the kernel.');
      return;
    }
    this.pinTo(pane, sources);
  }

  /** Pin a line of the kernel that somebody points at outside of the bench: in the editor of its cell. */
  pinLine(wanted: SourceLine): void {
    const record = this.record;
    const source = record?.stages.find(stage => stage.name === 'source')?.text.split('\n') ?? [];
    const first = record?.source_first_line ?? 1;
    const line = nearestLine(source.length, at => source[at - first] ?? '', wanted, first);
    if (line === null) {
      this.host.say(`The kernel of this bench has no line "${wanted.text.trim()}": run the cell again after changes.`);
      return;
    }
    this.pinTo(null, [line]);
    if (this.panes.every(pane => pane.stage.name === 'source' || pane.kin.lines([line]).length === 0)) {
      this.host.say(`Line ${line} of the kernel has no lines of its own in these stages.`);
    }
  }

  private pinTo(pane: PaneView | null, sources: readonly number[]): void {
    this.pin = new Set(sources);
    this.relight(pane, this.pin, true);
    const told = sources.length === 1 ? `line ${sources[0]}` : `lines ${sources.join(', ')}`;
    this.host.say(`Pinned to ${told} of the kernel; Escape lets go.`);
    this.tellPin();
  }

  private letGo(): void {
    this.pin = null;
    this.relight(null, new Set(), false);
    this.tellPin();
  }

  private tellPin(): void {
    const record = this.record;
    tell(this.element, PINNED, record === null ? [] : [...(this.pin ?? [])].map(line => sourceLine(record, line)));
  }

  command(pane: PaneView, key: string): boolean {
    switch (key) {
      case 'm':
        this.maximised = this.maximised === pane.stage.name ? '' : pane.stage.name;
        this.layout();
        pane.focus();
        return true;
      case 'x':
        this.host.closed(pane.stage.name);
        return true;
      case 'Escape':
        this.letGo();
        return true;
      case '[':
      case ']': {
        const at = this.panes.findIndex(each => each === pane) + (key === ']' ? 1 : -1);
        this.panes[(at + this.panes.length) % this.panes.length]?.focus();
        return true;
      }
      default:
        return false;
    }
  }

  /** Light what comes of a line of the kernel, which something else than a pane points at; 0 for none. */
  lightLine(line: number, pin: boolean): void {
    if (pin && line > 0) {
      this.pin = new Set([line]);
    }
    this.relight(null, line > 0 ? new Set([line]) : (this.pin ?? new Set()), pin);
  }

  private relight(from: PaneView | null, sources: ReadonlySet<number>, scroll: boolean): void {
    for (const pane of this.panes) {
      // Two uses of one macro share its lines, and are no kin for that: only the source shows them.
      const lines = pane.kin.lines(pane.stage.name === 'source' ? sources : [...sources].slice(0, 1));
      pane.light(lines, scroll && pane !== from && lines.length > 0 ? densest(lines, pane.height) : null);
    }
  }

  // -- geometry
  private layout(): void {
    const count = this.panes.length;
    this.element.dataset['alone'] = String(this.maximised !== '');
    for (const pane of this.panes) {
      // A width that a person chose stays; the others share what is left.
      const width = this.maximised === '' ? this.widths.get(pane.stage.name) : undefined;
      pane.element.style.flex = width === undefined || count === 1 ? '' : `0 0 ${width}px`;
      pane.element.style.minWidth = width === undefined ? '' : `${LEAST}px`;
      pane.element.hidden = this.maximised !== '' && pane.stage.name !== this.maximised;
    }
    if (this.maximised !== '' && !this.panes.some(pane => pane.stage.name === this.maximised)) {
      this.maximised = '';
      this.layout();
      return;
    }
    const seen = this.panes.filter(pane => !pane.element.hidden);
    const letter = seen[0]?.measure().letter;
    const sizes = seen.map(pane => pane.measure(letter));
    seen.forEach((pane, at) => pane.layout(sizes[at]));
    if (seen.length === count) {
      const widths = sizes.map(size => size.width);
      [...this.element.querySelectorAll<HTMLElement>(':scope > .tbx-divider')].forEach((bar, at) =>
        tellShare(bar, widths[at]! / Math.max(1, widths[at]! + widths[at + 1]!))
      );
    }
  }

  private divider(at: number): HTMLElement {
    const [left, right] = [this.panes[at - 1]!, this.panes[at]!];
    return divider(`width of ${left.stage.name} and ${right.stage.name}`, by => this.resize(left, right, by));
  }

  private resize(left: Pane, right: Pane, by: number): void {
    const [a, b] = [left.element.offsetWidth, right.element.offsetWidth];
    const width = Math.max(LEAST, Math.min(a + b - LEAST, a + by));
    this.widths.set(left.stage.name, width);
    this.widths.set(right.stage.name, a + b - width);
    this.layout();
  }
}

/** What the compiler made where a person edited; null where nobody did. */
function ownLines(pane: PaneView): string[] | null {
  const edit = pane.record.edits.find(each => each.stage === pane.stage.name && each.before !== '');
  return edit === undefined ? null : linesOf(edit.before);
}

/** What tells one compilation from the next: its position, and the texts that a person wrote. */
function identity(record: CompileRecord): string {
  const edited = record.edits.map(edit => record.stages.find(stage => stage.name === edit.stage)?.text ?? '');
  return [position(record), ...edited].join('\n');
}

/** A record's position in words: its target and parameters. */
export function position(record: CompileRecord): string {
  const given = Object.entries(record.parameters).map(([name, value]) => `${name}=${String(value)}`);
  const chosen = record.choices.filter(each => each.origin === 'call').map(each => `${each.address}.${each.name}=${each.value}`);
  return [record.target, ...given, ...chosen].join(' ');
}
