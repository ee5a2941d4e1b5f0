/** The plugins of tilebench for JupyterLab 4 and Notebook 7. Only tokens that both have are required. */

import { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { EditorExtensionRegistry, IEditorExtensionRegistry } from '@jupyterlab/codemirror';
import { ICompletionProviderManager } from '@jupyterlab/completer';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { tileCompletion } from './editor/completion';
import { tileCell } from './editor/tile-cell';
import { tileTools } from './editor/tools';
import { connect } from './panel';
import { marksFactory, rendererFactory } from './renderer';

const records: JupyterFrontEndPlugin<void> = {
  id: '@tilebench/jupyterlab:records',
  description: 'Shows compile and run records of tilebench in outputs.',
  autoStart: true,
  requires: [IRenderMimeRegistry],
  activate: (_app: JupyterFrontEnd, registry: IRenderMimeRegistry) => {
    registry.addFactory(rendererFactory);
    registry.addFactory(marksFactory);
  }
};

const cells: JupyterFrontEndPlugin<void> = {
  id: '@tilebench/jupyterlab:cells',
  description: 'Marks, documents and checks %%tile cells while they are edited.',
  autoStart: true,
  requires: [IEditorExtensionRegistry],
  optional: [ICommandPalette],
  activate: (app: JupyterFrontEnd, registry: IEditorExtensionRegistry, palette: ICommandPalette | null) => {
    connect(app, palette);
    registry.addExtension({
      name: 'tilebench:tile-cell',
      factory: ({ model }) =>
        EditorExtensionRegistry.createImmutableExtension([tileCell(() => model.mimeType), tileTools(model)])
    });
  }
};

const completion: JupyterFrontEndPlugin<void> = {
  id: '@tilebench/jupyterlab:completion',
  description: 'Completes names of the tile language and options of the magic in %%tile cells.',
  autoStart: true,
  optional: [ICompletionProviderManager],
  activate: (_app: JupyterFrontEnd, manager: ICompletionProviderManager | null) => {
    manager?.registerProvider(tileCompletion);
  }
};

export default [records, cells, completion];
