/**
 * Completion in tile cells from the table of the language, with signature and line: it needs no kernel, and stands
 * before what the kernel says of the same names. Values of options are the kernel's, which knows targets and files.
 */

import { CompletionHandler, ICompletionContext, ICompletionProvider } from '@jupyterlab/completer';
import { offered, OPTIONS, shortSignature, wordOf } from '../words';
import { MAGIC } from './cell';

type Item = CompletionHandler.ICompletionItem;
/** What is being typed: a word may have no letters yet, an option one dash. */
const WORD_BEGUN = /(?<![\w.])T\.(\w*)$/;
const OPTION_BEGUN = /(?<=\s)--?[\w-]*$/;

function wordItem(name: string): Item {
  const word = wordOf(name)!;
  const documentation = [`T.${name}${word.signature}`, word.line, ...word.notes].join('\n\n');
  const kind = word.signature.startsWith('(') ? 'function' : 'instance';
  return { label: `${name}${shortSignature(word.signature)}`, insertText: name, type: kind, documentation };
}

function optionItem(name: string): Item {
  const [form, what] = OPTIONS[name]!;
  return { label: `${name}  ${what.replaceAll('`', '')}`, insertText: name, type: 'option', documentation: `${name} ${form}\n\n${what}` };
}

/** What a cell's text can go on with at a place; nothing outside of tile cells and elsewhere in them. */
function completionsAt(text: string, at: number): CompletionHandler.ICompletionItemsReply {
  const before = text.slice(0, at);
  const word = WORD_BEGUN.exec(before);
  if (MAGIC.test(text) && word !== null && before.includes('\n')) {
    const typed = word[1] ?? '';
    const exact = offered().filter(name => name.startsWith(typed));
    const near = exact.length > 0 ? exact : offered().filter(name => name.toLowerCase().startsWith(typed.toLowerCase()));
    return { start: at - typed.length, end: at, items: near.map(wordItem) };
  }
  const option = MAGIC.test(text) && !before.includes('\n') ? OPTION_BEGUN.exec(before) : null;
  if (option !== null) {
    const items = Object.keys(OPTIONS).filter(name => name.startsWith(option[0])).map(optionItem);
    return { start: at - option[0].length, end: at, items };
  }
  return { start: at, end: at, items: [] };
}

/** The provider for JupyterLab's completer. */
export const tileCompletion: ICompletionProvider = {
  identifier: 'CompletionProvider:tilebench',
  // Before the kernel's (550), whose items of the same names say less.
  rank: 700,
  renderer: null,
  isApplicable: async (context: ICompletionContext) => MAGIC.test(context.editor?.model.sharedModel.getSource() ?? ''),
  fetch: async request => completionsAt(request.text, request.offset)
};
