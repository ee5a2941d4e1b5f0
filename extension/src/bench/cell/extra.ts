/** From a line of a pane to its line in the cell: a button and a key, where an editor listens; and the panel beside it. */

import { button } from '../../dom';
import { CompileRecord } from '../../record';
import { ExtraBench, PaneButton, PaneExtra, PaneView } from '../pane/door';
import { EDIT_LINE, hasEditor, OPEN_PANEL, SourceLine, tell } from './link';

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

/** What a bench has where an editor listens: the key from a line to its cell, and the button of the panel. */
export class CellLink implements PaneExtra {
  constructor(private readonly bench: ExtraBench) {}

  readonly tool = hasEditor() ? button('Panel', 'show this bench beside the notebook too', () => tell(this.tool!, OPEN_PANEL, null)) : undefined;

  buttons(pane: PaneView): readonly PaneButton[] {
    return hasEditor() && pane.record.source_file !== ''
      ? [{ text: '\u2197', name: 'go to this line in the cell', key: 'g', press: () => this.bench.say(edit(pane)) }]
      : [];
  }
}
