/**
 * Marks in cells that begin with `%%tile`: the magic line, its options, and the words of the tile
 * language. The body of such a cell is Python, so JupyterLab's own mode colours the rest; the magic
 * line alone is no Python, and is laid over here.
 */

import { syntaxTree } from '@codemirror/language';
import { Extension, Range } from '@codemirror/state';
import { Decoration, DecorationSet, EditorView, ViewPlugin, ViewUpdate } from '@codemirror/view';
import { isCode, isTileCell, MAGIC, OPTION, WORD } from './cell';

const magicLine = Decoration.line({ class: 'tb-magic-line' });
const magicName = Decoration.mark({ class: 'tb-magic' });
const magicOption = Decoration.mark({ class: 'tb-magic-option' });
const tileWord = Decoration.mark({ class: 'tb-tile-word' });

function magicMarks(view: EditorView): Range<Decoration>[] {
  const line = view.state.doc.line(1);
  const name = MAGIC.exec(line.text)?.[0] ?? '';
  const start = line.from + name.length - name.trimStart().length;
  const out = [magicLine.range(line.from), magicName.range(start, line.from + name.length)];
  for (const match of line.text.matchAll(OPTION)) {
    out.push(magicOption.range(line.from + match.index, line.from + match.index + match[0].length));
  }
  return out;
}

function wordMarks(view: EditorView): Range<Decoration>[] {
  const out: Range<Decoration>[] = [];
  const body = view.state.doc.line(1).to;
  for (const range of view.visibleRanges) {
    const from = Math.max(range.from, body);
    if (from >= range.to) {
      continue;
    }
    for (const match of view.state.sliceDoc(from, range.to).matchAll(WORD)) {
      const at = from + match.index;
      if (isCode(view.state, at)) {
        out.push(tileWord.range(at, at + match[0].length));
      }
    }
  }
  return out;
}

function marks(view: EditorView): DecorationSet {
  return Decoration.set([...magicMarks(view), ...wordMarks(view)], true);
}

class TileCellMarks {
  decorations: DecorationSet = Decoration.none;

  constructor(
    view: EditorView,
    private readonly isPython: () => boolean
  ) {
    this.draw(view);
  }

  update(update: ViewUpdate): void {
    // The parser works in the background and the MIME type comes with the kernel, so a transaction
    // without a change of the text may still change what is right. Most have neither.
    const parsed = syntaxTree(update.state) !== syntaxTree(update.startState);
    if (update.docChanged || update.viewportChanged || parsed) {
      this.draw(update.view);
    }
  }

  private draw(view: EditorView): void {
    // Every editor of the application comes through here: all but tile cells cost one regular expression.
    this.decorations = isTileCell(view.state) && this.isPython() ? marks(view) : Decoration.none;
  }
}

/** The extension for one editor; `mimeType` is asked anew each time, since a kernel may change it. */
export function tileCell(mimeType: () => string): Extension {
  const isPython = (): boolean => /^text\/x-i?python$/.test(mimeType());
  return ViewPlugin.define(view => new TileCellMarks(view, isPython), { decorations: plugin => plugin.decorations });
}
