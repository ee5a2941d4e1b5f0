/** The plugins of tilebench for JupyterLab 4 and Notebook 7. Only tokens that both have are required. */

import { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { EditorExtensionRegistry, IEditorExtensionRegistry } from '@jupyterlab/codemirror';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
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
  activate: (app: JupyterFrontEnd, registry: IEditorExtensionRegistry) => {
    connect(app);
    registry.addExtension({
      name: 'tilebench:tile-cell',
      factory: ({ model }) =>
        EditorExtensionRegistry.createImmutableExtension([tileCell(() => model.mimeType), tileTools(model)])
    });
  }
};

export default [records, cells];
