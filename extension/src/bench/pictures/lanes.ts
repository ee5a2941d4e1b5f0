/** One instruction of a warp: a row for each pass over the banks, or for each sector that it moves. */

import { make } from '../../dom';
import { LanesDrawing } from '../state';
import { CellGrid, Cells, COLOURS } from './cells';
import { Kept } from './kept';
import { plainTable } from './tile';

/** A row of words: those of one pass, or the bytes of one sector; each with the lanes that ask for it. */
interface PassRow {
  readonly name: string;
  readonly lanes: readonly (readonly number[])[];
}

/** The passes over the banks, phase by phase: a bank gives one word a pass. */
function passRows(drawing: LanesDrawing): PassRow[] {
  const { lanes, width, banks, bank_bytes } = drawing;
  const words = Math.max(1, Math.floor(width / bank_bytes));
  const size = Math.max(1, Math.floor(banks / words));
  const out: PassRow[] = [];
  for (let first = 0; first < lanes.length; first += size) {
    const held = Array.from({ length: banks }, () => new Map<number, number[]>());
    lanes.slice(first, first + size).forEach((byte, at) => {
      for (let k = 0; byte >= 0 && k < words; k += 1) {
        const word = Math.floor(byte / bank_bytes) + k;
        const bank = held[word % banks];
        bank?.set(word, [...(bank.get(word) ?? []), first + at]);
      }
    });
    const most = Math.max(...held.map(bank => bank.size));
    for (let pass = 0; pass < most; pass += 1) {
      const row = held.map(bank => [...bank.values()][pass] ?? []);
      out.push({ name: size < lanes.length ? `${first / size + 1}.${pass + 1}` : String(pass + 1), lanes: row });
    }
  }
  return out;
}

/** The sectors that are moved, in order of their addresses, in cells of `unit` bytes. */
function sectorRows(drawing: LanesDrawing): { rows: PassRow[]; unit: number } {
  const { lanes, width, sector } = drawing;
  const unit = Math.max(1, Math.min(4, width));
  const found = new Map<number, number[][]>();
  lanes.forEach((byte, lane) => {
    for (let k = 0; byte >= 0 && k < width; k += unit) {
      const number = Math.floor((byte + k) / sector);
      const row = found.get(number) ?? Array.from({ length: sector / unit }, () => []);
      row[Math.floor(((byte + k) % sector) / unit)]?.push(lane);
      found.set(number, row);
    }
  });
  const numbers = [...found.keys()].sort((one, other) => one - other);
  return { rows: numbers.map(number => ({ name: String(number * sector), lanes: found.get(number) ?? [] })), unit };
}

export function lanesElement(drawings: readonly LanesDrawing[], kept: Kept): HTMLElement {
  const parts = drawings.map((drawing, at) => {
    const grid = new CellGrid(cellsOf(drawing), kept.grid(`lanes ${at} ${drawing.banks}`));
    return make('div', { class: 'tbx-side-by-side' }, make('h4', {}, titleOf(drawing)), grid.element, twin(drawing));
  });
  return make('figure', { class: 'tbx-picture tbx-sides' }, ...parts);
}

function titleOf(drawing: LanesDrawing): string {
  const rows = drawing.banks > 0 ? passRows(drawing).length : sectorRows(drawing).rows.length;
  const what = drawing.banks > 0 ? (rows === 1 ? 'pass' : 'passes') : rows === 1 ? 'sector' : 'sectors';
  return `${drawing.title}: ${rows} ${what}`;
}

function cellsOf(drawing: LanesDrawing): Cells {
  const shared = drawing.banks > 0;
  const { rows, unit } = shared ? { rows: passRows(drawing), unit: drawing.bank_bytes } : sectorRows(drawing);
  const columns = shared ? drawing.banks : drawing.sector / unit;
  const size = Math.max(1, rows.length) * columns;
  const [colours, kin] = [new Int8Array(size).fill(shared ? -1 : -2), new Int32Array(size).fill(-1)];
  const lanesAt = (at: number): readonly number[] => rows[Math.floor(at / columns)]?.lanes[at % columns] ?? [];
  for (let at = 0; at < size; at += 1) {
    const lane = lanesAt(at)[0];
    if (lane !== undefined) {
      colours[at] = lane % COLOURS;
      kin[at] = lane;
    }
  }
  const who = (lanes: readonly number[]): string => (lanes.length === 1 ? `lane ${lanes[0] ?? 0}` : `lanes ${lanes.join(', ')}`);
  return {
    label: shared ? 'a row a pass over the banks, a column a bank' : 'a row a sector that is moved, its bytes along',
    rows: Math.max(1, rows.length),
    columns,
    colours,
    kin,
    text: at => {
      const lanes = lanesAt(at);
      return lanes.length === 0 ? '' : lanes.length === 1 ? String(lanes[0]) : `${lanes[0] ?? 0}+${lanes.length - 1}`;
    },
    rowName: row => rows[row]?.name ?? '',
    words: (row, column) => {
      const lanes = lanesAt(row * columns + column);
      const name = rows[row]?.name ?? '';
      if (shared) {
        return `pass ${row + 1} of ${rows.length}, bank ${column}: ${lanes.length > 0 ? `one word for ${who(lanes)}` : 'idle'}`;
      }
      const first = Number(name) + column * unit;
      return `byte ${first}${unit > 1 ? ` to ${first + unit - 1}` : ''}: ${lanes.length > 0 ? who(lanes) : 'moved, and nobody asks for it'}`;
    }
  };
}

/** The lanes as a table, made when it is opened. */
function twin(drawing: LanesDrawing): HTMLElement {
  const body = make('div', { class: 'tbx-wide' });
  const details = make('details', { class: 'tbx-twin' }, make('summary', {}, 'The lanes as a table'), body);
  details.addEventListener('toggle', () => {
    const { banks, bank_bytes, sector, width } = drawing;
    const rows = drawing.lanes.map((byte, lane) => {
      const place = banks > 0 ? Math.floor(byte / bank_bytes) % banks : Math.floor(byte / sector);
      return byte < 0 ? [String(lane), 'takes no part', ''] : [String(lane), String(byte), String(place)];
    });
    const heads = ['lane', 'first byte', banks > 0 ? 'first bank' : 'sector'];
    body.replaceChildren(plainTable(`${drawing.title}, ${width} bytes a lane`, heads, rows));
  });
  return details;
}
