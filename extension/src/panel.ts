/** A bench in a panel beside the notebook, or in a window: another view of the same outputs, which lives as long as they do. */

import { JupyterFrontEnd } from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import type { CodeEditor } from '@jupyterlab/codeeditor';
import { Panel, Widget } from '@lumino/widgets';
import { CAME, EDIT_LINE, editorIsHere, nearestLine, OPEN_PANEL, OPEN_WINDOW, PINNED, SourceLine } from './bench/cell/link';
import { benchCame, homeAt, showing, written } from './editor/homes';
import { editLine, markPinned, showStages } from './editor/jump';
import { elementOf, freshId } from './dom';
import { openWindow } from './window';

/** The part of a code cell and its notebook that is used here; other main widgets have none of it. */
interface Cell extends Widget {
  cloneOutputArea(): Widget;
}
interface AnyCell extends Widget {
  readonly model?: { readonly executionCount?: number | null };
  readonly editor?: CodeEditor.IEditor | null;
}
interface Book extends Widget {
  readonly content?: { readonly activeCell?: Widget | null; readonly widgets?: readonly AnyCell[] };
}

interface Found {
  readonly book: Book;
  readonly cell: Cell;
}

function isCode(cell: Widget | null | undefined): cell is Cell {
  return cell !== null && cell !== undefined && 'cloneOutputArea' in cell;
}

/** The notebook and the cell that an element stands in. */
function cellAt(app: JupyterFrontEnd, element: Element | null): Found | null {
  for (const book of app.shell.widgets('main') as Iterable<Book>) {
    const cell = book.content?.widgets?.find(each => element !== null && each.node.contains(element));
    if (isCode(cell)) {
      return { book, cell };
    }
  }
  return null;
}

function activeCell(app: JupyterFrontEnd): Found | null {
  const book = app.shell.currentWidget as Book | null;
  const cell = book?.content?.activeCell;
  return book !== null && isCode(cell) ? { book, cell } : null;
}

/** Another view of a cell's outputs. One whose cell is gone would stay without an owner. */
function viewOf({ book, cell }: Found): Panel {
  const panel = new Panel();
  panel.id = freshId('tb-panel');
  panel.addClass('tb-panel');
  panel.addClass('jp-LinkedOutputView');
  const name = cell.node.querySelector('.tbx-name')?.textContent ?? 'outputs';
  Object.assign(panel.title, { label: `Bench: ${name}`, caption: `${name}, of ${book.title.label}`, closable: true });
  panel.addWidget(cell.cloneOutputArea());
  cell.disposed.connect(() => panel.dispose());
  return panel;
}

/** Open the outputs of a cell beside its notebook. Notebook 7 has room for it at the right only. */
function openPanel(app: JupyterFrontEnd, found: Found): void {
  const { book } = found;
  const panel = viewOf(found);
  if (app.name === 'JupyterLab') {
    app.shell.add(panel, 'main', { ref: book.id, mode: 'split-right' });
  } else {
    app.shell.add(panel, 'right', { rank: 1000 });
    (app.shell as unknown as { expandRight?: (id: string) => void }).expandRight?.(panel.id);
  }
}

/** Select a line of a kernel that stands in a cell without the magic; whether there was one. */
function editPlainCell(app: JupyterFrontEnd, bench: HTMLElement, wanted: SourceLine): boolean {
  const number = /^Cell In\[(\d+)\]$/.exec(bench.dataset['file'] ?? '')?.[1];
  const found = cellAt(app, bench) ?? cellAt(app, showing(bench)?.view.dom ?? null);
  const editor = found?.book.content?.widgets?.find(cell => String(cell.model?.executionCount) === number)?.editor;
  const line = editor ? nearestLine(editor.lineCount, at => editor.getLine(at - 1) ?? '', wanted) : null;
  if (!editor || !found || line === null) {
    return false;
  }
  const [start, end] = [{ line: line - 1, column: 0 }, { line: line - 1, column: wanted.text.length }];
  app.shell.activateById(found.book.id);
  editor.focus();
  editor.setSelection({ start, end });
  editor.revealSelection({ start, end });
  return true;
}

/** Open the outputs of a cell in a window of the browser; what benches say there goes to their cells too. */
function openOutside(app: JupyterFrontEnd, found: Found): void {
  const page = openWindow(viewOf(found));
  if (page === null) {
    void Notification.warning('The browser lets this page open no window: allow it for this address, or use "Panel".');
    return;
  }
  listen(app, page);
}

/** What benches say to a page goes to their cells. */
function listen(app: JupyterFrontEnd, page: Document): void {
  const heard = (name: string, called: (bench: HTMLElement, detail: unknown) => boolean | void): void =>
    page.addEventListener(name, event => {
      const bench = elementOf(event.target)?.closest<HTMLElement>('.tbx') ?? null;
      if (bench !== null && called(bench, (event as CustomEvent<unknown>).detail) === true) {
        event.preventDefault();
      }
    });
  heard(EDIT_LINE, (bench, detail) => {
    const home = written(bench);
    if (home === null) {
      return editPlainCell(app, bench, detail as SourceLine);
    }
    const found = cellAt(app, home.view.dom);
    if (found !== null) {
      app.shell.activateById(found.book.id);
    }
    editLine(home, detail as SourceLine);
    return true;
  });
  heard(CAME, () => benchCame());
  heard(PINNED, (bench, detail) => {
    const home = written(bench);
    if (home !== null) {
      markPinned(home, detail as readonly SourceLine[]);
    }
  });
  for (const [name, open] of [[OPEN_PANEL, openPanel], [OPEN_WINDOW, openOutside]] as const) {
    heard(name, bench => {
      const found = cellAt(app, bench) ?? cellAt(app, showing(bench)?.view.dom ?? null);
      if (found !== null) {
        open(app, found);
      }
    });
  }
}

/** The commands, and the way between cells and benches. */
export function connect(app: JupyterFrontEnd, palette: ICommandPalette | null): void {
  editorIsHere();
  listen(app, document);
  const opens = (command: string, label: string, caption: string, open: typeof openPanel): void => {
    app.commands.addCommand(command, {
      label,
      caption,
      isEnabled: () => activeCell(app) !== null,
      execute: () => {
        const found = activeCell(app);
        if (found !== null) {
          open(app, found);
        }
      }
    });
  };
  opens('tilebench:open-panel', 'Open Bench in a Panel', 'Show the outputs of this cell beside the notebook too', openPanel);
  opens('tilebench:open-window', 'Open Bench in a Window', 'Show the outputs of this cell in a browser window of their own too', openOutside);
  app.commands.addCommand('tilebench:show-line', {
    label: 'Show the Stages of This Line',
    caption: 'Pin the line of the cursor in the benches of its cell',
    isEnabled: () => activeCell(app) !== null,
    execute: () => {
      const home = homeAt(activeCell(app)?.cell.node.querySelector('.cm-editor') ?? null);
      if (home !== null) {
        showStages(home.view);
      }
    }
  });
  for (const [at, command] of ['tilebench:show-line', 'tilebench:open-panel', 'tilebench:open-window'].entries()) {
    app.contextMenu.addItem({ command, selector: '.jp-CodeCell:has(.tb-magic-line)', rank: 9 + at / 10 });
    palette?.addItem({ command, category: 'Tilebench' });
  }
}
