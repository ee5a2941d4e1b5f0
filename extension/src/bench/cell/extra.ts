/** From a line of a pane to its line in the cell: a button and a key, where an editor listens; and the panel beside it. */

import { button, make } from '../../dom';
import { CompileRecord } from '../../record';
import { ExtraBench, PaneButton, PaneExtra, PaneView } from '../pane/door';
import { EDIT_LINE, hasEditor, OPEN_PANEL, OPEN_WINDOW, SourceLine, tell } from './link';

/** A line of the kernel with its text. */
export function sourceLine(record: CompileRecord, line: number): SourceLine {
  const source = record.stages.find(stage => stage.name === 'source');
  return { line, text: source?.text.split('\n')[line - record.source_first_line] ?? '' };
}

/** Go to the line in the cell that a line of a pane came from; gives why not. */
function edit(pane: PaneView): string {
  const line = pane.kin.sources(pane.current)[0];
  if (line === undefined) {
    return 'This line comes from no line of the kernel.';
  }
  return tell(pane.element, EDIT_LINE, sourceLine(pane.record, line)) ? '' : `Line ${line} of ${pane.record.source_file} is in no cell of this notebook.`;
}

/** The buttons that show the same bench elsewhere. */
function places(): HTMLElement {
  const out = make('span', { class: 'tbx-places' });
  const other = (text: string, title: string, what: string): HTMLElement => button(text, title, () => tell(out, what, null));
  out.append(
    other('Panel', 'show this bench beside the notebook too', OPEN_PANEL),
    other('Window', 'show this bench in a window of its own too', OPEN_WINDOW)
  );
  return out;
}

/** What a bench has where an editor listens: the key from a line to its cell, and the buttons of panel and window. */
export class CellLink implements PaneExtra {
  constructor(private readonly bench: ExtraBench) {}

  readonly tool = hasEditor() ? places() : undefined;

  buttons(pane: PaneView): readonly PaneButton[] {
    return hasEditor() && pane.record.source_file !== ''
      ? [{ text: '\u2197', name: 'go to this line in the cell', key: 'g', press: () => this.bench.say(edit(pane)) }]
      : [];
  }
}
