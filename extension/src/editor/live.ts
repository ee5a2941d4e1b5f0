/** Marks for what can be known without running: names that the language has not, options that the magic has not. */

import { Diagnostic } from '@codemirror/lint';
import { EditorState } from '@codemirror/state';
import { missing, nearest, OPTIONS, wordOf } from '../words';
import { isCode, OPTION, WORD } from './cell';

/** The marks of a cell's text. */
export function liveMarks(state: EditorState): Diagnostic[] {
  return [...unknownOptions(state), ...unknownWords(state)];
}

function unknownOptions(state: EditorState): Diagnostic[] {
  const line = state.doc.line(1);
  // What is quoted is a value.
  const text = line.text.replace(/'[^']*'|"[^"]*"/g, quoted => ' '.repeat(quoted.length));
  const out: Diagnostic[] = [];
  for (const match of text.matchAll(OPTION)) {
    if (!Object.hasOwn(OPTIONS, match[0])) {
      const known = Object.keys(OPTIONS);
      const close = nearest(match[0], known);
      const cure = close === null ? `options: ${known.join(', ')}` : `did you mean ${close}?`;
      const from = line.from + match.index;
      out.push({ from, to: from + match[0].length, severity: 'error', message: `%%tile has no option ${match[0]}; ${cure}` });
    }
  }
  return out;
}

function unknownWords(state: EditorState): Diagnostic[] {
  const start = state.doc.line(1).to;
  const out: Diagnostic[] = [];
  for (const match of state.sliceDoc(start).matchAll(WORD)) {
    const from = start + match.index;
    const to = from + match[0].length;
    const name = match[1]!;
    // A name that is being typed is not wrong yet.
    if (wordOf(name) !== null || state.selection.main.head === to || !isCode(state, from)) {
      continue;
    }
    // A package may bring a word of its own, which only the kernel knows: hence no error.
    out.push({ from, to, severity: 'warning', message: missing(name) });
  }
  return out;
}
