/** A grid of coloured cells on a canvas: numbers where they fit, words of the cell that is looked at below it. */

import { button, make, onKey } from '../../dom';
import { onResize } from '../size';
import { GridPlace } from './kept';

/** What a grid shows. Cells are numbered by rows; colour -1 is an empty cell, -2 a grey one. */
export interface Cells {
  readonly label: string;
  readonly rows: number;
  readonly columns: number;
  readonly colours: Int8Array;
  /** Cells of one number are marked together with the cell that is looked at; -1: with none. */
  readonly kin: Int32Array;
  text(at: number): string;
  words(row: number, column: number): string;
  rowName?(row: number): string;
}

/** Width and height of a cell, in pixels, from the smallest to one with room for a number. */
const SIZES: readonly [number, number][] = [[2, 2], [3, 3], [4, 4], [6, 6], [9, 9], [14, 14], [25, 16], [34, 18], [48, 20]];
const [LEFT, TOP, MOST] = [34, 16, 420];
// The width of a letter in a cell.
const LETTER = 5.5;
export const COLOURS = 8;

export class CellGrid {
  readonly element: HTMLElement;
  private readonly canvas = make('canvas', { class: 'tbx-cells-canvas', 'aria-hidden': 'true' });
  private readonly sheet = make('div', { class: 'tbx-cells-sheet' });
  private readonly view: HTMLElement;
  private readonly said = make('p', { class: 'tbx-cells-said', role: 'status' });
  private picture: HTMLCanvasElement | null = null;
  private ink: string[] = [];
  private pending = false;

  constructor(private cells: Cells, private readonly place: GridPlace) {
    this.view = make('div', { class: 'tbx-cells-view', tabindex: '0', role: 'application', 'aria-roledescription': 'grid of cells' }, this.sheet);
    const zoom = (by: number, name: string, title: string): HTMLElement => button(name, title, () => this.zoom(by));
    const buttons = make('span', { class: 'tbx-cells-zoom' }, zoom(-1, '\u2212', 'smaller cells'), zoom(1, '+', 'larger cells'), zoom(0, 'fit', 'cells as they fit'));
    this.element = make('div', { class: 'tbx-cells' }, buttons, make('div', { class: 'tbx-cells-frame' }, this.canvas, this.view), this.said);
    this.view.addEventListener('scroll', () => this.soon());
    onKey(this.view, event => this.key(event));
    this.view.addEventListener('pointerdown', event => this.point(event, true));
    this.view.addEventListener('pointermove', event => this.point(event, false));
    this.view.addEventListener('pointerleave', () => this.say());
    onResize(this.element, () => this.lay());
    this.show(cells);
  }

  /** Draw other cells in the same place. */
  show(cells: Cells): void {
    this.cells = cells;
    this.picture = null;
    this.place.row = Math.min(this.place.row, cells.rows - 1);
    this.place.column = Math.min(this.place.column, cells.columns - 1);
    this.view.setAttribute('aria-label', `${cells.label}; arrow keys move from cell to cell`);
    this.lay();
    this.say();
  }

  private size(): [number, number] {
    const [width, height] = this.level();
    // Few rows have room to be seen.
    return [width, Math.max(height, Math.min(14, Math.floor((MOST - TOP) / this.cells.rows)))];
  }

  private level(): [number, number] {
    if (this.place.zoom >= 0) {
      return SIZES[Math.min(this.place.zoom, SIZES.length - 1)] ?? [2, 2];
    }
    const room = this.view.clientWidth - LEFT;
    const fitting = SIZES.filter(([width, height]) => width * this.cells.columns <= room && height * this.cells.rows <= MOST - TOP);
    return fitting[fitting.length - 1] ?? SIZES[0] ?? [2, 2];
  }

  private zoom(by: number): void {
    const [width] = this.size();
    const now = SIZES.findIndex(size => size[0] === width);
    this.place.zoom = by === 0 ? -1 : Math.max(0, Math.min(SIZES.length - 1, now + by));
    this.lay();
    this.reveal();
  }

  /** Sizes of what scrolls, then a drawing. */
  private lay(): void {
    const [width, height] = this.size();
    this.sheet.style.width = `${LEFT + width * this.cells.columns}px`;
    this.sheet.style.height = `${TOP + height * this.cells.rows}px`;
    // Where it scrolls sideways, the bar of that takes none of the rows.
    const bar = LEFT + width * this.cells.columns > this.view.clientWidth ? 16 : 2;
    this.view.style.height = `${Math.min(MOST, TOP + height * this.cells.rows) + bar}px`;
    this.soon();
  }

  private soon(): void {
    if (!this.pending) {
      this.pending = true;
      requestAnimationFrame(() => {
        this.pending = false;
        this.draw();
      });
    }
  }

  /** The colours of now as a browser writes them: those of the page's theme. */
  private inks(): void {
    const probe = make('i', {});
    this.element.append(probe);
    const names = [...Array.from({ length: COLOURS }, (_, at) => `c${at}`), 'track', 'fg', 'dim', 'bg', 'accent', 'line'];
    this.ink = names.map(name => {
      probe.style.color = `var(--${name})`;
      return getComputedStyle(probe).color;
    });
    probe.remove();
  }

  private colour(at: number): string {
    const number = this.cells.colours[at] ?? -1;
    return (number === -1 ? this.ink[COLOURS + 3] : number === -2 ? this.ink[COLOURS] : this.ink[number % COLOURS]) ?? '';
  }

  /** A pixel a cell: drawn larger, it is the whole grid at once. */
  private pixels(): HTMLCanvasElement {
    const { rows, columns } = this.cells;
    const out = make('canvas', { width: String(columns), height: String(rows) });
    const context = out.getContext('2d');
    if (context !== null) {
      const image = context.createImageData(columns, rows);
      const known = new Map<string, readonly number[]>();
      for (let at = 0; at < rows * columns; at += 1) {
        const name = this.colour(at);
        const parts = known.get(name) ?? (name.match(/[\d.]+/g) ?? []).map(Number);
        known.set(name, parts);
        image.data.set([parts[0] ?? 0, parts[1] ?? 0, parts[2] ?? 0, 255], at * 4);
      }
      context.putImageData(image, 0, 0);
    }
    return out;
  }

  private draw(): void {
    const context = this.canvas.getContext('2d');
    const [wide, high] = [this.view.clientWidth, this.view.clientHeight];
    if (context === null || wide === 0) {
      return;
    }
    this.inks();
    const scale = this.canvas.ownerDocument.defaultView?.devicePixelRatio || 1;
    [this.canvas.width, this.canvas.height] = [Math.round(wide * scale), Math.round(high * scale)];
    [this.canvas.style.width, this.canvas.style.height] = [`${wide}px`, `${high}px`];
    context.setTransform(scale, 0, 0, scale, 0, 0);
    this.picture ??= this.pixels();
    const [width, height] = this.size();
    const [left, top] = [LEFT - this.view.scrollLeft, TOP - this.view.scrollTop];
    context.save();
    context.beginPath();
    context.rect(LEFT, TOP, wide, high);
    context.clip();
    context.imageSmoothingEnabled = false;
    context.drawImage(this.picture, left, top, width * this.cells.columns, height * this.cells.rows);
    this.each(width, height, wide, high, (at, x, y) => this.detail(context, at, x, y, width, height));
    context.restore();
    this.heads(context, width, height, wide, high);
  }

  /** The cells that are in view. */
  private each(width: number, height: number, wide: number, high: number, visit: (at: number, x: number, y: number) => void): void {
    const { scrollLeft, scrollTop } = this.view;
    const { rows, columns } = this.cells;
    const lastRow = Math.min(rows, Math.ceil((scrollTop + high - TOP) / height));
    const lastColumn = Math.min(columns, Math.ceil((scrollLeft + wide - LEFT) / width));
    for (let row = Math.floor(scrollTop / height); row < lastRow; row += 1) {
      for (let column = Math.floor(scrollLeft / width); column < lastColumn; column += 1) {
        visit(row * columns + column, LEFT - scrollLeft + column * width, TOP - scrollTop + row * height);
      }
    }
  }

  private detail(context: CanvasRenderingContext2D, at: number, x: number, y: number, width: number, height: number): void {
    const [fg, accent, bg] = [this.ink[COLOURS + 1] ?? '', this.ink[COLOURS + 4] ?? '', this.ink[COLOURS + 3] ?? ''];
    // Nothing is marked before somebody looks at a cell.
    const here = this.place.looked ? this.place.row * this.cells.columns + this.place.column : -1;
    const kin = this.cells.kin[here] ?? -1;
    if (at === here || (kin >= 0 && this.cells.kin[at] === kin)) {
      if (width < 6) {
        context.fillStyle = at === here ? fg : accent;
        context.fillRect(x, y, width, height);
      } else {
        context.lineWidth = at === here ? 3 : 2;
        context.strokeStyle = at === here ? fg : accent;
        context.strokeRect(x + 1.5, y + 1.5, width - 3, height - 3);
      }
    } else if (width >= 6) {
      context.lineWidth = 1;
      context.strokeStyle = bg;
      context.strokeRect(x + 0.5, y + 0.5, width, height);
    }
    const text = width >= 14 ? this.cells.text(at) : '';
    if (text !== '' && text.length * LETTER <= width - 3) {
      context.fillStyle = fg;
      context.font = '9px ui-monospace, Menlo, Consolas, monospace';
      context.textAlign = 'center';
      context.textBaseline = 'middle';
      context.fillText(text, x + width / 2, y + height / 2 + 0.5);
    }
  }

  /** Numbers of rows and columns, as many as have room. */
  private heads(context: CanvasRenderingContext2D, width: number, height: number, wide: number, high: number): void {
    context.fillStyle = this.ink[COLOURS + 2] ?? '';
    context.font = '10px system-ui, sans-serif';
    context.textBaseline = 'middle';
    const every = (size: number, room: number): number => [1, 2, 4, 8, 16, 32, 64, 128].find(step => step * size >= room) ?? 256;
    const [rowStep, columnStep] = [every(height, 12), every(width, 24)];
    context.textAlign = 'right';
    for (let row = 0; row < this.cells.rows; row += rowStep) {
      const y = TOP - this.view.scrollTop + row * height + Math.min(height, 20) / 2;
      if (y >= TOP && y <= high) {
        context.fillText(this.cells.rowName?.(row) ?? String(row), LEFT - 4, y);
      }
    }
    context.textAlign = 'left';
    for (let column = 0; column < this.cells.columns; column += columnStep) {
      const x = LEFT - this.view.scrollLeft + column * width;
      if (x >= LEFT && x <= wide) {
        context.fillText(String(column), x + 1, TOP / 2);
      }
    }
  }

  // -- what is looked at
  private key(event: KeyboardEvent): void {
    const { rows, columns } = this.cells;
    const page = event.shiftKey ? 8 : 1;
    const moves: Record<string, [number, number]> = {
      ArrowRight: [0, page], ArrowLeft: [0, -page], ArrowDown: [page, 0], ArrowUp: [-page, 0],
      Home: [0, -columns], End: [0, columns], PageDown: [rows, 0], PageUp: [-rows, 0]
    };
    const by = moves[event.key];
    if (by !== undefined) {
      this.place.looked = true;
      // The notebook moves between cells with arrow keys too; these are ours.
      event.preventDefault();
      event.stopPropagation();
      this.place.row = Math.max(0, Math.min(rows - 1, this.place.row + by[0]));
      this.place.column = Math.max(0, Math.min(columns - 1, this.place.column + by[1]));
      this.reveal();
      this.say();
      this.soon();
    }
  }

  private point(event: PointerEvent, choose: boolean): void {
    const box = this.view.getBoundingClientRect();
    const [width, height] = this.size();
    const column = Math.floor((event.clientX - box.left + this.view.scrollLeft - LEFT) / width);
    const row = Math.floor((event.clientY - box.top + this.view.scrollTop - TOP) / height);
    if (row < 0 || column < 0 || row >= this.cells.rows || column >= this.cells.columns) {
      return;
    }
    if (choose) {
      [this.place.row, this.place.column, this.place.looked] = [row, column, true];
      this.say();
      this.soon();
    } else {
      this.said.textContent = this.cells.words(row, column);
    }
  }

  /** Scroll, in the grid alone, to the cell that is looked at. */
  private reveal(): void {
    const [width, height] = this.size();
    const [x, y] = [this.place.column * width, this.place.row * height];
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = this.view;
    this.view.scrollLeft = Math.min(x, Math.max(scrollLeft, x + width + LEFT - clientWidth));
    this.view.scrollTop = Math.min(y, Math.max(scrollTop, y + height + TOP - clientHeight));
  }

  private say(): void {
    this.said.textContent = this.cells.words(this.place.row, this.place.column);
  }
}
