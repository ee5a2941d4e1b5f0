/** The content of tabs: tables, bars, maps and sentences, all from plain data. */

import { make } from '../dom';
import { errorMap } from './drawn/errors';
import { lanes } from './drawn/lanes';
import { choiceElement } from './pictures/choice';
import { Kept } from './pictures/kept';
import { lanesElement } from './pictures/lanes';
import { mapElement } from './pictures/spans';
import { tileElement } from './pictures/tile';
import { ActionData, BarData, Block, CellData, Drawing, TableData } from './state';

/** One block as elements; `kept` is what the reader chose in pictures. */
export function blockElements(block: Block, kept: Kept): HTMLElement[] {
  const out: HTMLElement[] = [];
  if (block.text !== '') {
    out.push(make('p', { class: `tbx-say tbx-tone-${block.tone || 'plain'}` }, block.text));
  }
  if (block.quote !== '') {
    out.push(make('pre', { class: 'tbx-quote' }, block.quote));
  }
  if (block.table !== null) {
    out.push(make('div', { class: 'tbx-wide' }, tableElement(block.table)));
  }
  if (block.bars.length > 0) {
    out.push(make('div', { class: 'tbx-bars' }, ...block.bars.flatMap(barElements)));
  }
  if (block.action !== null) {
    out.push(actionElement(block.action));
  }
  if (block.errors !== null) {
    out.push(errorMap(block.errors));
  }
  if (block.lanes !== null) {
    out.push(lanes(block.lanes));
  }
  if (block.drawing !== null) {
    out.push(...drawingElements(block.drawing, kept));
  }
  if (block.choice !== null) {
    out.push(choiceElement(block.choice, kept, inner => blockElements(inner, kept)));
  }
  return out;
}

function drawingElements(drawing: Drawing, kept: Kept): HTMLElement[] {
  return [
    ...(drawing.tile === null ? [] : [tileElement(drawing.tile, kept)]),
    ...(drawing.lanes.length === 0 ? [] : [lanesElement(drawing.lanes, kept)]),
    ...(drawing.map === null ? [] : [mapElement(drawing.map)])
  ];
}

/** A button in a tab; who holds the bench hears what it asks for. */
function actionElement(action: ActionData): HTMLElement {
  const out = make('button', { type: 'button', class: 'tbx-button' }, action.label);
  out.addEventListener('click', () => out.dispatchEvent(new CustomEvent('tbx-ask', { bubbles: true, detail: action.kind })));
  return make('p', {}, out);
}

function tableElement(block: TableData): HTMLElement {
  const [numeric, mono] = [new Set(block.numeric), new Set(block.mono)];
  const kind = (at: number): string => [numeric.has(at) ? 'tbx-num' : '', mono.has(at) ? 'tbx-mono' : ''].filter(Boolean).join(' ');
  const head = make('tr', {}, ...block.heads.map((text, at) => headElement(text, kind(at))));
  const rows = block.rows.map(row => make('tr', {}, ...row.map((cell, at) => cellElement(cell, kind(at)))));
  const caption = block.caption === '' ? [] : [make('caption', {}, block.caption)];
  return make('table', { class: 'tbx-table' }, ...caption, make('thead', {}, head), make('tbody', {}, ...rows));
}

/** The head of a column; a column that explains itself has an empty one, which is then no head. */
export function headElement(text: string, kind = ''): HTMLElement {
  return text === '' ? make('td', {}) : make('th', { scope: 'col', class: kind }, text);
}

function cellElement(cell: CellData, kind: string): HTMLElement {
  const classes = [kind, cell.tone === '' ? '' : `tbx-tone-${cell.tone}`].filter(Boolean).join(' ');
  const attributes: Record<string, string> = classes === '' ? {} : { class: classes };
  if (cell.title !== '') {
    attributes['title'] = cell.title;
  }
  return make('td', attributes, cell.text);
}

function barElements(bar: BarData): HTMLElement[] {
  const width = `${(Math.max(0, Math.min(1, bar.part)) * 100).toFixed(1)}%`;
  const fill = make('span', { class: bar.over ? 'tbx-over' : '', style: `width:${width}` });
  return [
    make('div', {}, bar.name),
    make('div', { class: 'tbx-track', role: 'img', 'aria-label': `${bar.name} ${bar.text}` }, fill),
    make('div', { class: 'tbx-num' }, bar.text)
  ];
}
