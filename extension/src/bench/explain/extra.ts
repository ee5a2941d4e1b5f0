/** Where the pointer rests on a word of the language or an opcode, or on the key `i`, a pane says what that is. */

import { unpack } from '../../check';
import { ExtraBench, PaneExtra, PaneView, Token } from '../pane/door';
import { saidOf } from '../said';
import { isTile } from '../text/lines';
import { explainAssembly, explainWord, Tables } from './opcodes';
import { PACKED } from './packed';

const LANGUAGES = new Set(['nvsass', 'ptx']);
let tables: Tables | null = null;
const unpacked = unpack(PACKED).then(found => (tables = found as Tables));

export class Explanations implements PaneExtra {
  constructor(bench: ExtraBench) {
    if (tables === null) {
      void unpacked.then(() => bench.redraw());
    }
  }

  explains(pane: PaneView, line: number, token: Token): string {
    const { language } = pane.stage;
    if (tables === null) {
      return '';
    }
    if (isTile(language)) {
      // What a stage's own words mean there is said elsewhere.
      return token.text.startsWith('T.') && saidOf(pane, line, token) === '' ? explainWord(tables, token.text.slice(2)) : '';
    }
    return LANGUAGES.has(language) ? explainAssembly(tables, pane.lines[line] ?? '', language, token.text, token.start) : '';
  }
}
