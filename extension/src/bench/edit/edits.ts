/** Editors in the panes of a bench: opened by a button or `e`, kept while panes are made anew, told what became of them. */

import { make } from '../../dom';
import { Ask } from '../data';
import { PaneButton, PaneExtra, PaneView } from '../pane/door';
import { BenchState, EditsData, ProblemData } from '../state';
import { Editor, EditorHost } from './editor';

const NONE: EditsData = { editable: [], edited: [], kept: [] };

export class Edits implements PaneExtra, EditorHost {
  private readonly editors = new Map<string, Editor>();
  private readonly drafts = new Map<string, string>();
  private readonly panes = new Map<string, PaneView>();
  private state: BenchState | null = null;

  constructor(private readonly ask: (what: Ask) => void) {}

  /** Take a new state, before panes are made for it. */
  show(state: BenchState): void {
    this.state = state;
    for (const [stage, editor] of this.editors) {
      const text = this.panes.get(stage)?.stage.text;
      if (text !== undefined) {
        this.tell(editor, text);
      }
    }
  }

  /** Whether an editor shows a problem, so that nobody else has to. */
  tells(problem: ProblemData | null): boolean {
    return problem !== null && problem.line > 0 && this.editors.get(problem.stage)?.element.isConnected === true;
  }

  // -- what it adds to a pane
  buttons(pane: PaneView): readonly PaneButton[] {
    const { editable }: EditsData = this.state?.edits ?? NONE;
    const stage = pane.stage.name;
    if (!editable.includes(stage) || pane.stage.pending) {
      return [];
    }
    const open = this.editors.has(stage);
    const edit = { text: '\u270e', name: open ? 'close the editor' : 'edit the text', key: 'e', pressed: open, press: () => this.toggle(pane) };
    return [edit];
  }

  made(pane: PaneView): void {
    const stage = pane.stage.name;
    this.panes.set(stage, pane);
    if (this.state?.edits.edited.includes(stage)) {
      pane.element.classList.add('tbx-edited');
      pane.element.querySelector('.tbx-head strong')?.after(make('span', { class: 'tbx-tone-warn' }, 'edited'));
    }
    const editor = this.editors.get(stage);
    if (editor !== undefined) {
      const place = editor.place;
      this.tell(editor, pane.stage.text);
      pane.instead(editor.element);
      // The row of panes puts this one into the page in a moment.
      queueMicrotask(() => editor.moveTo(place));
    }
  }

  // -- what an editor asks
  compile(stage: string, text: string): void {
    this.ask({ kind: 'edit', stage, text });
  }

  revert(stage: string): void {
    this.drafts.delete(stage);
    this.ask({ kind: 'revert', stage });
  }

  closed(stage: string): void {
    const [editor, pane] = [this.editors.get(stage), this.panes.get(stage)];
    if (editor === undefined) {
      return;
    }
    if (editor.unsaved) {
      this.drafts.set(stage, editor.text);
    } else {
      this.drafts.delete(stage);
    }
    this.editors.delete(stage);
    pane?.instead(null);
    pane?.redraw();
    pane?.focus();
  }

  private toggle(pane: PaneView): void {
    const stage = pane.stage.name;
    if (this.editors.has(stage)) {
      this.closed(stage);
      return;
    }
    const text = pane.stage.text;
    const editor = new Editor(stage, pane.stage.language, text, this);
    this.editors.set(stage, editor);
    pane.instead(editor.element);
    pane.redraw();
    const draft = this.drafts.get(stage);
    if (draft !== undefined && draft !== text) {
      editor.write(draft);
    }
    this.tell(editor, text);
    editor.focus(pane.current + 1);
  }

  private tell(editor: Editor, text: string): void {
    if (this.state !== null) {
      const { problem, edits, status } = this.state;
      const own = problem !== null && problem.line > 0 && problem.stage === editor.stage ? problem : null;
      const done = ['done', 'failed', 'cancelled'].includes(status.phase);
      editor.show(text, edits.edited.includes(editor.stage), own, done);
    }
  }
}
