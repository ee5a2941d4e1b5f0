/** What a cell has while it begins with `%%tile`; every other editor of the application has nothing of it. */

import { Compartment, EditorState, Extension } from '@codemirror/state';
import { CellModel, MAGIC } from './cell';
import { hover } from './hover';
import { jump } from './jump';
import { squiggles } from './squiggles';

interface Model extends CellModel {
  readonly sharedModel: { getSource(): string };
}

/** The extension of one editor: comes and goes with the magic in its first line. */
export function tileTools(model: Model): Extension {
  const place = new Compartment();
  const tools: Extension = [squiggles(model), jump(model), hover()];
  const none: Extension = [];
  // The type of a cell is plain text until its kernel has said what it speaks.
  const wanted = (first: string): boolean => MAGIC.test(first) && /^text\/(x-i?python|plain)$/.test(model.mimeType);
  return [
    place.of(wanted(model.sharedModel.getSource()) ? tools : none),
    EditorState.transactionExtender.of(tr => {
      const now = wanted(tr.newDoc.line(1).text) ? tools : none;
      return place.get(tr.startState) === now ? null : { effects: place.reconfigure(now) };
    })
  ];
}
