/** What stands under the pointer in a tile cell: words of the language, options of the magic. */

import { EditorState, Extension } from '@codemirror/state';
import { hoverTooltip } from '@codemirror/view';
import { wordOf } from '../words';
import { isCode, isTileCell, OPTION, WORD } from './cell';
import { optionTold, wordTold } from './told';

const NAME = new RegExp(`${WORD.source}|${OPTION.source}`, 'g');

interface Found {
  readonly from: number;
  readonly to: number;
  readonly told: HTMLElement;
}

/** The word or option at a place of the text. */
function toldAt(state: EditorState, at: number): Found | null {
  const line = state.doc.lineAt(at);
  for (const match of line.text.matchAll(NAME)) {
    const from = line.from + match.index;
    const to = from + match[0].length;
    if (at < from || at > to) {
      continue;
    }
    if (match[1] === undefined) {
      const told = line.number === 1 ? optionTold(match[0]) : null;
      return told && { from, to, told };
    }
    const word = wordOf(match[1]);
    return word !== null && isCode(state, from) ? { from, to, told: wordTold(word) } : null;
  }
  return null;
}

/** The extension of one tile cell. */
export function hover(): Extension {
  return hoverTooltip((view, at) => {
    const found = isTileCell(view.state) ? toldAt(view.state, at) : null;
    return found && { pos: found.from, end: found.to, above: true, create: () => ({ dom: found.told }) };
  });
}
