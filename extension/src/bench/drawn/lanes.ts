/** What warps did when: a lane a warp on one axis, to zoom and pan, by mouse and by keyboard. */

import { button, make, onKey, rove } from '../../dom';
import { onResize } from '../size';
import { draw } from './svg';
import { LaneBlockData, LanesData } from '../state';

const [LEFT, LANE, GAP, AXIS] = [74, 18, 4, 30];
/** A begin, a length, a site and a turn. */
const FIELDS = 4;
/** A bar narrower than this has no words; pixels. */
const WORDED = 44;

interface Bar { lane: number; place: number; start: number; length: number; site: number; turn: number }

/** The element of lanes; it keeps what a person zoomed to and points at. */
export function lanes(data: LanesData): HTMLElement {
  return new LanesView(data).element;
}

class LanesView {
  readonly element = make('figure', { class: 'tbx-lanes' });
  private readonly plot = make('div', { class: 'tbx-lanes-plot', tabindex: '0', role: 'application', 'aria-roledescription': 'timeline' });
  private readonly said = make('p', { class: 'tbx-lanes-said', role: 'status' });
  private readonly blocks: HTMLElement[];
  private chosen = 0;
  private from = 0;
  private to = 1;
  private now: Bar | null = null;
  private width = 640;

  constructor(private readonly data: LanesData) {
    this.blocks = data.blocks.map((block, at) => button(block.title, '', () => this.choose(at)));
    const tools = [
      button('−', 'zoom out', () => this.zoom(2)), button('+', 'zoom in', () => this.zoom(0.5)),
      button('All', 'the whole block', () => this.window(0, this.block.length))
    ];
    const bar = make('div', { class: 'tbx-lanes-bar', role: 'toolbar', 'aria-label': 'timeline' }, ...tools, ...(this.blocks.length > 1 ? this.blocks : []));
    rove(bar, [...bar.children] as HTMLElement[]);
    const help = 'Left and right go from bar to bar, up and down from warp to warp, plus and minus zoom, Enter lights the line.';
    this.plot.setAttribute('aria-label', `${data.label}. ${help}`);
    onKey(this.plot, event => this.key(event));
    this.plot.addEventListener('mousemove', event => this.point(event));
    this.plot.addEventListener('mouseleave', () => this.tell('tbx-line', 0));
    this.plot.addEventListener('click', () => this.tell('tbx-pin', this.line));
    this.plot.addEventListener('wheel', event => this.wheel(event), { passive: false });
    this.pan();
    this.element.append(bar, this.said, this.plot, this.legend());
    onResize(this.plot, () => this.fit());
    this.choose(0);
  }

  private get block(): LaneBlockData {
    return this.data.blocks[this.chosen]!;
  }

  private get line(): number {
    return this.now === null ? 0 : (this.data.sites[this.now.site]?.line ?? 0);
  }

  private choose(at: number): void {
    this.chosen = at;
    this.now = null;
    this.blocks.forEach((each, index) => each.setAttribute('aria-pressed', String(index === at)));
    this.window(0, this.block.length);
    this.said.textContent = 'Point at a bar, or move with the arrow keys.';
  }

  private legend(): HTMLElement {
    const kinds = [...new Set(this.data.sites.map(site => site.kind))];
    return make('figcaption', {}, ...kinds.map(kind => make('span', {}, make('b', { class: `tbx-swatch tbx-lane-${kind}` }), kind)));
  }

  private fit(): void {
    const width = this.plot.clientWidth;
    if (width > 0 && Math.abs(width - this.width) > 1) {
      this.width = width;
      this.draw();
    }
  }

  private window(from: number, to: number): void {
    const length = Math.max(1, this.block.length);
    const size = Math.max(Math.min(3, length), Math.min(length, to - from));
    this.from = Math.max(0, Math.min(length - size, from));
    this.to = this.from + size;
    this.draw();
  }

  private zoom(by: number, around = (this.from + this.to) / 2): void {
    const size = (this.to - this.from) * by;
    this.window(around - ((around - this.from) / (this.to - this.from)) * size, around - ((around - this.from) / (this.to - this.from)) * size + size);
  }

  private x(cycle: number): number {
    return LEFT + ((cycle - this.from) / (this.to - this.from)) * (this.width - LEFT - 8);
  }

  private cycle(x: number): number {
    return this.from + ((x - LEFT) / Math.max(1, this.width - LEFT - 8)) * (this.to - this.from);
  }

  private draw(): void {
    const lanes = this.block.lanes;
    const height = AXIS + lanes.length * (LANE + GAP);
    const parts: SVGElement[] = [...this.axis(height)];
    lanes.forEach((lane, at) => {
      const y = AXIS + at * (LANE + GAP);
      parts.push(draw('text', { x: LEFT - 6, y: y + LANE - 5, class: 'tbx-axis tbx-end' }, lane.name));
      parts.push(...this.bars(at, y));
    });
    parts.push(...this.mark());
    this.plot.replaceChildren(draw('svg', { width: this.width, height, class: 'tbx-plot-own', 'aria-hidden': 'true' }, ...parts));
  }

  /** The bars of a lane as one path a kind; those narrower than a pixel share it with their neighbours. */
  private bars(lane: number, y: number): SVGElement[] {
    const paths = new Map<string, string[]>();
    const words: SVGElement[] = [];
    let drawnTo = -1;
    for (const bar of this.seen(lane)) {
      const [left, right] = [Math.max(LEFT, this.x(bar.start)), Math.min(this.width - 8, this.x(bar.start + bar.length))];
      if (right <= drawnTo) {
        continue;
      }
      drawnTo = Math.max(right, left + 0.6);
      const kind = this.data.sites[bar.site]?.kind ?? 'compute';
      const runs = paths.get(kind) ?? [];
      runs.push(`M${left.toFixed(1)} ${y}H${drawnTo.toFixed(1)}v${LANE}H${left.toFixed(1)}z`);
      paths.set(kind, runs);
      if (right - left > WORDED) {
        const room = Math.floor((right - left - 6) / 6);
        words.push(draw('text', { x: left + 3, y: y + LANE - 5, class: `tbx-lane-word tbx-on-${kind}` }, (this.data.sites[bar.site]?.name ?? '').slice(0, room)));
      }
    }
    return [...[...paths].map(([kind, runs]) => draw('path', { d: runs.join(''), class: `tbx-lane-${kind}` })), ...words];
  }

  private *seen(lane: number): Generator<Bar> {
    const bars = this.block.lanes[lane]?.bars ?? [];
    for (let place = 0; place * FIELDS < bars.length; place += 1) {
      const bar = this.bar(lane, place)!;
      if (bar.start + bar.length >= this.from && bar.start <= this.to) {
        yield bar;
      }
    }
  }

  private bar(lane: number, place: number): Bar | null {
    const bars = this.block.lanes[lane]?.bars ?? [];
    const at = place * FIELDS;
    return at < 0 || at >= bars.length
      ? null
      : { lane, place, start: bars[at]!, length: bars[at + 1]!, site: bars[at + 2]!, turn: bars[at + 3]! };
  }

  private axis(height: number): SVGElement[] {
    const step = nice((this.to - this.from) / Math.max(2, (this.width - LEFT) / 110));
    const out: SVGElement[] = [draw('text', { x: 2, y: 12, class: 'tbx-axis' }, this.data.unit)];
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
      out.push(draw('line', { x1: this.x(at), x2: this.x(at), y1: 16, y2: height, class: 'tbx-grid' }));
      if (this.x(at) < this.width - 44) {
        out.push(draw('text', { x: this.x(at), y: 12, class: 'tbx-axis tbx-mid' }, this.label(at)));
      }
    }
    return out;
  }

  private label(at: number): string {
    const each = this.data.a_microsecond;
    return each > 0 ? `${Math.round(at)} (${(at / each).toPrecision(3)} us)` : String(Math.round(at));
  }

  private mark(): SVGElement[] {
    if (this.now === null) {
      return [];
    }
    const left = Math.max(LEFT, this.x(this.now.start));
    const width = Math.max(2, Math.min(this.width - 8, this.x(this.now.start + this.now.length)) - left);
    return [draw('rect', { x: left, y: AXIS + this.now.lane * (LANE + GAP) - 1, width, height: LANE + 2, class: 'tbx-lane-now' })];
  }

  private point(event: MouseEvent): void {
    const box = this.plot.getBoundingClientRect();
    const lane = Math.floor((event.clientY - box.top - AXIS) / (LANE + GAP));
    const cycle = this.cycle(event.clientX - box.left);
    for (const bar of this.seen(lane)) {
      if (bar.start <= cycle && cycle <= bar.start + bar.length) {
        this.show(bar);
        return;
      }
    }
  }

  private show(bar: Bar): void {
    this.now = bar;
    const site = this.data.sites[bar.site];
    const time = this.data.a_microsecond > 0 ? ` (${(bar.length / this.data.a_microsecond).toPrecision(3)} us)` : '';
    const line = site !== undefined && site.line > 0 ? `, line ${site.line}` : '';
    const name = this.block.lanes[bar.lane]?.name ?? '';
    this.said.textContent =
      `${name}: ${site?.kind ?? ''}, ${site?.name ?? ''}${line}, turn ${bar.turn}: ${bar.length} ${this.data.unit}${time} from ${bar.start} to ${bar.start + bar.length}`;
    this.tell('tbx-line', this.line);
    this.draw();
  }

  /** Panes light the line of the kernel that a bar is of. */
  private tell(what: string, line: number): void {
    this.element.dispatchEvent(new CustomEvent(what, { bubbles: true, detail: line }));
  }

  private wheel(event: WheelEvent): void {
    if (!event.ctrlKey && !event.shiftKey && event.deltaX === 0) {
      return; // the page scrolls
    }
    event.preventDefault();
    if (event.ctrlKey) {
      this.zoom(event.deltaY > 0 ? 1.3 : 1 / 1.3, this.cycle(event.clientX - this.plot.getBoundingClientRect().left));
    } else {
      const by = ((event.deltaX || event.deltaY) / this.width) * (this.to - this.from);
      this.window(this.from + by, this.to + by);
    }
  }

  private pan(): void {
    this.plot.addEventListener('pointerdown', event => {
      this.plot.setPointerCapture(event.pointerId);
      const [begin, from, to] = [event.clientX, this.from, this.to];
      const move = (next: PointerEvent): void => {
        const by = ((begin - next.clientX) / Math.max(1, this.width - LEFT)) * (to - from);
        if (Math.abs(begin - next.clientX) > 3) {
          this.window(from + by, to + by);
        }
      };
      const done = new AbortController();
      const end = (): void => done.abort();
      this.plot.addEventListener('pointermove', move, { signal: done.signal });
      // A page may take the pointer for itself, to scroll for example: then no button is let go of.
      for (const what of ['pointerup', 'pointercancel', 'lostpointercapture'] as const) {
        this.plot.addEventListener(what, end, { signal: done.signal });
      }
    });
  }

  private key(event: KeyboardEvent): void {
    if (!this.act(event.key)) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  private act(key: string): boolean {
    switch (key) {
      case 'ArrowRight': return this.step(1, 0);
      case 'ArrowLeft': return this.step(-1, 0);
      case 'ArrowDown': return this.step(0, 1);
      case 'ArrowUp': return this.step(0, -1);
      case '+': case '=': this.zoom(0.5, this.now?.start); return true;
      case '-': this.zoom(2, this.now?.start); return true;
      case 'Home': this.window(0, this.to - this.from); return true;
      case 'End': this.window(this.block.length, 2 * this.block.length); return true;
      case 'Enter': this.tell('tbx-pin', this.line); return true;
      case 'Escape': this.window(0, this.block.length); return true;
      default: return false;
    }
  }

  private step(along: number, across: number): boolean {
    const lane = Math.max(0, Math.min(this.block.lanes.length - 1, (this.now?.lane ?? 0) + across));
    let place = (this.now?.place ?? -along) + along;
    if (across !== 0) {
      const start = this.now?.start ?? 0;
      place = Math.max(0, [...Array((this.block.lanes[lane]?.bars.length ?? 0) / FIELDS).keys()].filter(k => (this.bar(lane, k)?.start ?? 0) <= start).length - 1);
    }
    const bar = this.bar(lane, place);
    if (bar === null) {
      return true;
    }
    if (bar.start < this.from || bar.start + bar.length > this.to) {
      const size = this.to - this.from;
      this.window(bar.start - size / 4, bar.start + (3 * size) / 4);
    }
    this.show(bar);
    return true;
  }
}

/** 1, 2 or 5 times a power of ten, at least 1, that is not smaller. */
function nice(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return [1, 2, 5, 10].map(by => by * power).find(step => step >= least) ?? 10 * power;
}
