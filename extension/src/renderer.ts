/** The renderer of outputs that carry a record. */

import { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';
import { readEnvelope } from './check';
import { make } from './dom';
import { renderCompile } from './panels';
import { renderRun } from './panels/run/view';
import { MIME_TYPE } from './record';

class RecordOutput extends Widget implements IRenderMime.IRenderer {
  private undo: () => void = () => undefined;

  constructor() {
    super();
    this.addClass('tb-record');
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this.clear();
    try {
      const envelope = readEnvelope(model.data[MIME_TYPE]);
      if (envelope.kind === 'compile') {
        this.undo = renderCompile(envelope.record, this.node);
      } else {
        renderRun(envelope.record, this.node);
      }
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      this.node.append(make('p', { class: 'tb-failure', role: 'alert' }, text));
    }
  }

  override dispose(): void {
    this.clear();
    super.dispose();
  }

  private clear(): void {
    this.undo();
    this.undo = () => undefined;
    this.node.replaceChildren();
  }
}

export const rendererFactory: IRenderMime.IRendererFactory = {
  safe: true,
  mimeTypes: [MIME_TYPE],
  // Before text/html (60): the same output carries the static picture for other front ends.
  defaultRank: 40,
  createRenderer: () => new RecordOutput()
};
