/** A map of errors by the tiles of blocks: all of a result, and parts of it element by element. */

import { button, make, onKey, rove } from '../../dom';
import { draw } from './svg';
import { ErrorMapData, ErrorPartData } from '../state';

/** What a digit of a map says. */
const NAMES = [
  'exact', 'to 1 % of its bound', 'to 10 % of its bound', 'to 50 % of its bound', 'just inside its bound', 'outside its bound',
  'infinite', 'no number', 'never written', 'not compared'
];
/** Letters on what is wrong, so that no colour alone says it. */
const LETTERS: Readonly<Record<string, string>> = { '5': '×', '6': '∞', '7': 'N', '8': '–' };
const MOST = 380;

interface Cell { row: number; column: number }

/** The element of a map; it keeps what a person zoomed to. */
export function errorMap(data: ErrorMapData): HTMLElement {
  return new ErrorMapView(data).element;
}

class ErrorMapView {
  readonly element = make('figure', { class: 'tbx-errors' });
  private readonly plot = make('div', { class: 'tbx-errors-plot', tabindex: '0', role: 'application', 'aria-roledescription': 'map' });
  private readonly said = make('p', { class: 'tbx-errors-said tbx-quiet', role: 'status' });
  private readonly legend = make('figcaption', {});
  private readonly buttons: HTMLElement[];
  private chosen = 0;
  private now: Cell = { row: 0, column: 0 };
  private side = 1;

  constructor(private readonly data: ErrorMapData) {
    this.buttons = data.parts.map((part, at) => button(part.title, '', () => this.choose(at)));
    const bar = make('div', { class: 'tbx-errors-bar', role: 'toolbar', 'aria-label': 'parts of the map' }, ...this.buttons);
    rove(bar, this.buttons);
    this.plot.setAttribute('aria-label', `${data.label}. Arrow keys move, Enter looks closer, Escape goes back.`);
    onKey(this.plot, event => this.key(event));
    this.plot.addEventListener('mousemove', event => this.point(event));
    this.plot.addEventListener('click', event => {
      this.point(event);
      this.closer();
    });
    this.element.append(bar, this.said, this.plot, this.legend);
    this.choose(0);
  }

  private get part(): ErrorPartData {
    return this.data.parts[this.chosen]!;
  }

  private choose(at: number): void {
    this.chosen = at;
    this.now = { row: 0, column: 0 };
    this.buttons.forEach((button, index) => button.setAttribute('aria-pressed', String(index === at)));
    const { rows } = this.part;
    const columns = rows[0]?.length ?? 0;
    this.side = Math.max(2, Math.min(18, Math.floor(MOST / Math.max(rows.length, columns, 1))));
    this.plot.replaceChildren(this.picture(rows.length, columns));
    const used = [...new Set(rows.join(''))].sort();
    this.legend.replaceChildren(
      ...used.map(digit => make('span', {}, make('b', { class: `tbx-swatch tbx-err${digit}` }, LETTERS[digit] ?? ''), NAMES[Number(digit)] ?? '')),
      make('span', { class: 'tbx-quiet' }, this.squares())
    );
    this.said.textContent = this.data.parts.length > 1 && at === 0 ? 'Choose a part above, or a square, to see its elements.' : '';
  }

  private squares(): string {
    const [rows, columns] = [this.part.patch[0] ?? 1, this.part.patch[1] ?? 1];
    const what = rows * columns === 1 ? 'a square: one element' : `a square: ${rows} x ${columns} elements, the worst of them`;
    return this.data.tile.length === 2 ? `${what}; lines: blocks of ${this.data.tile.join(' x ')}` : what;
  }

  private picture(rows: number, columns: number): SVGElement {
    const size = this.side;
    const paths = new Map<string, string[]>();
    this.part.rows.forEach((row, i) => {
      for (let from = 0; from < row.length; ) {
        let to = from + 1;
        while (to < row.length && row[to] === row[from]) {
          to += 1;
        }
        const runs = paths.get(row[from]!) ?? [];
        runs.push(`M${from * size} ${i * size}h${(to - from) * size}v${size}h${(from - to) * size}z`);
        paths.set(row[from]!, runs);
        from = to;
      }
    });
    const filled = [...paths].map(([digit, runs]) => draw('path', { d: runs.join(''), class: `tbx-err${digit}` }));
    const letters = size < 9 ? [] : this.letters();
    const cursor = draw('rect', { width: size, height: size, class: 'tbx-err-now', visibility: 'hidden' });
    const [width, height] = [columns * size, rows * size];
    return draw('svg', { width: width + 1, height: height + 1, 'aria-hidden': 'true' }, ...filled, ...letters, this.lines(width, height), cursor);
  }

  private letters(): SVGElement[] {
    return this.part.rows.flatMap((row, i) =>
      [...row].flatMap((digit, j) => {
        const letter = LETTERS[digit];
        const place = { x: (j + 0.5) * this.side, y: (i + 0.5) * this.side, class: 'tbx-err-letter' };
        return letter === undefined ? [] : [draw('text', place, letter)];
      })
    );
  }

  /** The edges of blocks that fall between cells. */
  private lines(width: number, height: number): SVGElement {
    const [tall, wide] = [this.data.tile[0] ?? 0, this.data.tile[1] ?? 0];
    const { top, left, patch } = this.part;
    const across = edges(top, patch[0] ?? 1, this.part.rows.length, tall).map(at => `M0 ${at * this.side}h${width}`);
    const down = edges(left, patch[1] ?? 1, this.part.rows[0]?.length ?? 0, wide).map(at => `M${at * this.side} 0v${height}`);
    return draw('path', { d: [...across, ...down].join(''), class: 'tbx-err-lines' });
  }

  private point(event: MouseEvent): void {
    const box = this.plot.firstElementChild?.getBoundingClientRect();
    if (box !== undefined) {
      this.move(Math.floor((event.clientY - box.top) / this.side), Math.floor((event.clientX - box.left) / this.side));
    }
  }

  private move(row: number, column: number): void {
    const { rows } = this.part;
    this.now = {
      row: Math.max(0, Math.min(rows.length - 1, row)),
      column: Math.max(0, Math.min((rows[0]?.length ?? 1) - 1, column))
    };
    const cursor = this.plot.querySelector('.tbx-err-now');
    cursor?.setAttribute('x', String(this.now.column * this.side));
    cursor?.setAttribute('y', String(this.now.row * this.side));
    cursor?.setAttribute('visibility', 'visible');
    this.said.textContent = this.words();
  }

  private words(): string {
    const { top, left, patch, rows } = this.part;
    const digit = rows[this.now.row]?.[this.now.column] ?? '9';
    const [tall, wide] = [patch[0] ?? 1, patch[1] ?? 1];
    const [row, column] = [top + this.now.row * tall, left + this.now.column * wide];
    const one = tall * wide === 1;
    const where = one ? `row ${row}, column ${column}` : `rows ${row} to ${row + tall - 1}, columns ${column} to ${column + wide - 1}`;
    return `${where}${this.block(row, column)}: ${NAMES[Number(digit)] ?? ''}${one ? this.thread(row, column) : ''}`;
  }

  private block(row: number, column: number): string {
    const [tall, wide] = this.data.tile;
    return tall === undefined || wide === undefined ? '' : ` (block row ${Math.floor(row / tall)}, column ${Math.floor(column / wide)})`;
  }

  private thread(row: number, column: number): string {
    const { tile, thread_rows: byRow, thread_columns: byColumn, warp } = this.data;
    const [first, second] = [byRow[row % (tile[0] || 1)], byColumn[column % (tile[1] || 1)]];
    if (first === undefined || second === undefined) {
      return '';
    }
    const thread = first + second;
    return `; written by thread ${thread} (warp ${Math.floor(thread / warp)}, lane ${thread % warp})`;
  }

  /** From all of it to the part that has the square. */
  private closer(): void {
    const { patch } = this.part;
    const [row, column] = [this.now.row * (patch[0] ?? 1), this.now.column * (patch[1] ?? 1)];
    const found = this.data.parts.findIndex(
      (part, at) => at > 0 && row < part.top + part.rows.length && row + (patch[0] ?? 1) > part.top &&
        column < part.left + (part.rows[0]?.length ?? 0) && column + (patch[1] ?? 1) > part.left
    );
    if (this.chosen === 0 && found > 0) {
      this.choose(found);
    }
  }

  private key(event: KeyboardEvent): void {
    const { row, column } = this.now;
    const moves: Readonly<Record<string, [number, number]>> = {
      ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1]
    };
    const move = moves[event.key];
    if (move !== undefined) {
      this.move(...move);
    } else if (event.key === 'Enter') {
      this.closer();
    } else if (event.key === 'Escape' && this.chosen > 0) {
      this.choose(0);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}

/** Between which cells blocks end, of `count` cells of `patch` elements from element `first` on. */
function edges(first: number, patch: number, count: number, tile: number): number[] {
  const out: number[] = [];
  for (let at = 0; tile > 0 && at <= count; at += 1) {
    if ((first + at * patch) % tile === 0) {
      out.push(at);
    }
  }
  // Where every cell is a block, lines would be all there is.
  return out.length > count / 2 && count > 24 ? [] : out;
}
