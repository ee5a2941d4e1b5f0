/** The content of tabs: tables, bars, maps and sentences, all from plain data. */

import { make } from '../dom';
import { BarData, Block, CellData, HeatData, TableData } from './state';

const SVG = 'http://www.w3.org/2000/svg';

/** An element of a drawing. */
export function draw(tag: string, attributes: Record<string, string | number>, ...children: (Node | string)[]): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, String(value));
  }
  element.append(...children);
  return element;
}

/** One block as elements. */
export function blockElements(block: Block): HTMLElement[] {
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
  if (block.heat !== null) {
    out.push(heatElement(block.heat));
  }
  return out;
}

function tableElement(block: TableData): HTMLElement {
  const [numeric, mono] = [new Set(block.numeric), new Set(block.mono)];
  const kind = (at: number): string => [numeric.has(at) ? 'tbx-num' : '', mono.has(at) ? 'tbx-mono' : ''].filter(Boolean).join(' ');
  const head = make('tr', {}, ...block.heads.map((text, at) => make('th', { scope: 'col', class: kind(at) }, text)));
  const rows = block.rows.map(row => make('tr', {}, ...row.map((cell, at) => cellElement(cell, kind(at)))));
  const caption = block.caption === '' ? [] : [make('caption', {}, block.caption)];
  return make('table', { class: 'tbx-table' }, ...caption, make('thead', {}, head), make('tbody', {}, ...rows));
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

/** Names of the steps of a map of errors: parts of the bound. */
const STEPS = ['exact', 'to 1 %', 'to 10 %', 'to 50 %', 'to the bound', 'outside'];

function heatElement({ label, patch, steps }: HeatData): HTMLElement {
  const [rows, columns] = [steps.length, steps[0]?.length ?? 0];
  const side = Math.max(6, Math.min(16, Math.floor(320 / Math.max(rows, columns, 1))));
  const squares = steps.flatMap((row, i) =>
    row.map((step, j) => draw('rect', { x: j * side, y: i * side, width: side, height: side, class: `tbx-heat${step}` }))
  );
  const picture = draw('svg', { width: columns * side, height: rows * side, role: 'img', 'aria-label': label }, ...squares);
  const used = [...new Set(steps.flat())].sort((a, b) => a - b);
  const legend = used.map(step => make('span', {}, make('b', { class: `tbx-swatch tbx-heat${step}` }), STEPS[step] ?? ''));
  return make('figure', { class: 'tbx-heat' }, picture, make('figcaption', {}, ...legend, make('span', { class: 'tbx-quiet' }, patch)));
}
