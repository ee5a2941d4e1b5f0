/** A tile by who holds what: threads and registers, or banks of shared memory with and without the swizzle. */

import { make } from '../../dom';
import { TileDrawing } from '../state';
import { CellGrid, Cells, COLOURS } from './cells';
import { pressed } from './choice';
import { Kept } from './kept';

/** A tile of one row is cut into lines of this many elements. */
const LINE = 64;

/** The plane that a tile is drawn on: its last dimension along, all others down. */
interface Plane {
  readonly rows: number;
  readonly columns: number;
  /** The coordinates of a cell, and the cell of coordinates. */
  index(row: number, column: number): number[];
  cell(index: readonly number[]): number;
}

function planeOf(extents: readonly number[]): Plane {
  const size = extents.reduce((all, extent) => all * extent, 1);
  const last = extents[extents.length - 1] ?? 1;
  const columns = extents.length < 2 ? Math.min(LINE, last) : last;
  const flat = (index: readonly number[]): number => index.reduce((all, number, at) => all * (extents[at] ?? 1) + number, 0);
  return {
    rows: Math.ceil(size / columns),
    columns,
    cell: index => flat(index),
    index: (row, column) => {
      let rest = row * columns + column;
      const out: number[] = [];
      for (let at = extents.length - 1; at >= 0; at -= 1) {
        const extent = extents[at] ?? 1;
        out.unshift(at === 0 ? rest : rest % extent);
        rest = Math.floor(rest / extent);
      }
      return out;
    }
  };
}

/** Owner of each cell of a plane, its register, and how many hold it; -1 where nobody does. */
interface Holders {
  readonly threads: Int32Array;
  readonly registers: Int32Array;
  readonly copies: number;
}

type Modes = readonly (readonly number[])[];

/** Every number of mixed radix with what it adds to a coordinate; null where it is a copy. */
function counted(modes: Modes, rank: number): { steps: Int32Array; owner: boolean }[] {
  let out = [{ steps: new Int32Array(rank), owner: true }];
  for (const [count = 1, dim = 0, step = 0] of modes) {
    const next: typeof out = [];
    for (let digit = 0; digit < count; digit += 1) {
      for (const { steps, owner } of out) {
        const moved = Int32Array.from(steps);
        if (dim >= 0) {
          moved[dim] = (moved[dim] ?? 0) + digit * step;
        }
        next.push({ steps: moved, owner: owner && (dim >= 0 || digit === 0) });
      }
    }
    out = next;
  }
  return out;
}

function holdersOf(tile: TileDrawing, plane: Plane): Holders {
  const { extents } = tile;
  const size = extents.reduce((all, extent) => all * extent, 1);
  const threads = new Int32Array(plane.rows * plane.columns).fill(-1);
  const registers = new Int32Array(threads.length).fill(-1);
  const values = counted(tile.value, extents.length);
  counted(tile.thread, extents.length).forEach(({ steps, owner }, thread) => {
    if (!owner) {
      return;
    }
    values.forEach((value, register) => {
      let flat = 0;
      for (let at = 0; at < extents.length; at += 1) {
        const where = (steps[at] ?? 0) + (value.steps[at] ?? 0);
        if (where >= (extents[at] ?? 1)) {
          return;
        }
        flat = flat * (extents[at] ?? 1) + where;
      }
      if (flat < size && threads[flat] === -1) {
        threads[flat] = thread;
        registers[flat] = register;
      }
    });
  });
  const copies = tile.thread.reduce((all, [count = 1, dim = 0]) => (dim < 0 ? all * count : all), 1);
  return { threads, registers, copies };
}

/** Elements from the start of the buffer, with or without the swizzle. */
function offsetOf(tile: TileDrawing, index: readonly number[], swizzled: boolean): number {
  let total = 0;
  tile.places.forEach((modes, dim) => {
    let rest = index[dim] ?? 0;
    for (const [extent = 1, step = 0] of modes) {
      total += (rest % extent) * step;
      rest = Math.floor(rest / extent);
    }
  });
  const [bits = 0, base = 0, shift = 0] = tile.swizzle;
  return swizzled && bits > 0 ? total ^ ((total & (((1 << bits) - 1) << (base + shift))) >> shift) : total;
}

/** `row 3, column 17`, or the coordinates of a tile of another rank. */
function named(index: readonly number[]): string {
  return index.length === 2 ? `row ${index[0] ?? 0}, column ${index[1] ?? 0}` : index.length === 1 ? `element ${index[0] ?? 0}` : `element (${index.join(', ')})`;
}

export function tileElement(tile: TileDrawing, kept: Kept): HTMLElement {
  return tile.places.length > 0 ? sharedElement(tile, kept) : heldElement(tile, kept);
}

function heldElement(tile: TileDrawing, kept: Kept): HTMLElement {
  const plane = planeOf(tile.extents);
  const held = holdersOf(tile, plane);
  const by = ['thread', tile.unit, 'warp'];
  const key = 'tile colour';
  const cells = (): Cells => heldCells(tile, plane, held, by.indexOf(kept.chosen.get(key) ?? 'thread'));
  const grid = new CellGrid(cells(), kept.grid(`tile ${tile.name}`));
  const buttons = pressed(kept, key, 'colour by', by, () => grid.show(cells()));
  const legend = make('span', { class: 'tbx-quiet' }, `numbers are thread:${tile.unit}`);
  return make('figure', { class: 'tbx-picture' }, buttons, ' ', legend, grid.element, ofThread(tile, plane, held, kept));
}

function heldCells(tile: TileDrawing, plane: Plane, held: Holders, by: number): Cells {
  const { threads, registers, copies } = held;
  const colours = new Int8Array(threads.length);
  threads.forEach((thread, at) => {
    const register = registers[at] ?? 0;
    colours[at] = thread < 0 ? -1 : [thread, register, Math.floor(thread / tile.warp)][Math.max(0, by)]! % COLOURS;
  });
  const more = copies > 1 ? `, and ${copies - 1} more threads` : '';
  return {
    label: `${tile.name}: who holds each of ${tile.extents.join(' by ')} elements`,
    rows: plane.rows,
    columns: plane.columns,
    colours,
    kin: threads,
    text: at => ((threads[at] ?? -1) < 0 ? '' : `${threads[at] ?? 0}:${registers[at] ?? 0}`),
    rowName: row => (tile.extents.length < 2 ? String(row * plane.columns) : String(row)),
    words: (row, column) => {
      const at = row * plane.columns + column;
      const thread = threads[at] ?? -1;
      const where = named(plane.index(row, column));
      return thread < 0
        ? `${where}: nobody`
        : `${where}: thread ${thread}, ${tile.unit} ${registers[at] ?? 0} (warp ${Math.floor(thread / tile.warp)}, lane ${thread % tile.warp})${more}`;
    }
  };
}

/** The elements of the thread of the chosen cell as a table, made when it is opened. */
function ofThread(tile: TileDrawing, plane: Plane, held: Holders, kept: Kept): HTMLElement {
  const body = make('div', { class: 'tbx-wide' });
  const details = make('details', { class: 'tbx-twin' }, make('summary', {}, 'The chosen thread as a table'), body);
  details.addEventListener('toggle', () => {
    const place = kept.grid(`tile ${tile.name}`);
    const thread = held.threads[place.row * plane.columns + place.column] ?? -1;
    const rows: [number, string][] = [];
    held.threads.forEach((owner, at) => {
      if (owner === thread && thread >= 0) {
        rows.push([held.registers[at] ?? 0, plane.index(Math.floor(at / plane.columns), at % plane.columns).join(', ')]);
      }
    });
    rows.sort((one, other) => one[0] - other[0]);
    body.replaceChildren(plainTable(`thread ${thread}`, [tile.unit, 'element'], rows.map(([register, element]) => [String(register), element])));
  });
  return details;
}

/** A table of texts. */
export function plainTable(caption: string, heads: readonly string[], rows: readonly (readonly string[])[]): HTMLElement {
  const head = make('tr', {}, ...heads.map(text => make('th', { scope: 'col' }, text)));
  const body = rows.map(row => make('tr', {}, ...row.map(text => make('td', { class: 'tbx-num' }, text))));
  return make('table', { class: 'tbx-table' }, make('caption', {}, caption), make('thead', {}, head), make('tbody', {}, ...body));
}

function sharedElement(tile: TileDrawing, kept: Kept): HTMLElement {
  const plane = planeOf(tile.extents);
  const swizzled = (tile.swizzle[0] ?? 0) > 0;
  const sides = swizzled ? [false, true] : [true];
  const parts = sides.map(side => {
    const grid = new CellGrid(sharedCells(tile, plane, side), kept.grid(`tile ${tile.name} ${String(side)}`));
    const title = !swizzled ? 'the bank of each element' : side ? 'as it is: the bank of each element' : 'without the swizzle';
    return make('div', { class: 'tbx-side-by-side' }, make('h4', {}, title), grid.element);
  });
  return make('figure', { class: 'tbx-picture tbx-sides' }, ...parts.reverse());
}

function sharedCells(tile: TileDrawing, plane: Plane, swizzled: boolean): Cells {
  const size = plane.rows * plane.columns;
  const [colours, banks] = [new Int8Array(size), new Int32Array(size)];
  const byte = (at: number): number => Math.floor((offsetOf(tile, plane.index(Math.floor(at / plane.columns), at % plane.columns), swizzled) * tile.bits) / 8);
  for (let at = 0; at < size; at += 1) {
    banks[at] = Math.floor(byte(at) / tile.bank_bytes) % tile.banks;
    colours[at] = Math.floor(((banks[at] ?? 0) * COLOURS) / tile.banks);
  }
  return {
    label: `${tile.name}${swizzled ? '' : ' without its swizzle'}: the bank of each of ${tile.extents.join(' by ')} elements`,
    rows: plane.rows,
    columns: plane.columns,
    colours,
    kin: banks,
    text: at => String(banks[at] ?? 0),
    words: (row, column) => {
      const at = row * plane.columns + column;
      return `${named(plane.index(row, column))}: byte ${byte(at)} of the buffer, bank ${banks[at] ?? 0}`;
    }
  };
}
