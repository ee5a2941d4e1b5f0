/** The renderer of outputs that carry a record. */

import { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';
import { readOutput } from './check';
import { make } from './dom';
import { renderHeld } from './panels';
import { Panel } from './panels/panel';
import { MIME_TYPE } from './record';

const HTML = 'text/html';

/** Makes a renderer of another MIME type: what the registry of the application does. */
export type CreateRenderer = (mimeType: string) => IRenderMime.IRenderer;

/** The report that the same output carries for other front ends: its chart and history are there. */
function report(model: IRenderMime.IMimeModel, create: CreateRenderer): Panel {
  return {
    name: 'report',
    title: 'Report',
    applies: () => model.data[HTML] !== undefined,
    render: (_held, element) => {
      // Through the application's own renderer, which trusts an output or cleans it.
      const inner = create(HTML);
      element.append(inner.node);
      void inner.renderModel(model);
      return () => inner.dispose();
    }
  };
}

class RecordOutput extends Widget implements IRenderMime.IRenderer {
  private undo: () => void = () => undefined;
  private newest = 0;

  constructor(private readonly create: CreateRenderer) {
    super();
    this.addClass('tb-record');
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this.newest += 1;
    const mine = this.newest;
    try {
      const held = await readOutput(model.data[MIME_TYPE]);
      // Unpacking takes a moment, in which a newer model may have come or the output gone.
      if (mine === this.newest && !this.isDisposed) {
        this.clear();
        this.undo = renderHeld(held, this.node, [report(model, this.create)]);
      }
    } catch (error) {
      if (mine === this.newest && !this.isDisposed) {
        this.clear();
        const text = error instanceof Error ? error.message : String(error);
        this.node.append(make('p', { class: 'tb-failure', role: 'alert' }, text));
      }
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

/** The factory for the application's registry. */
export function rendererFactory(create: CreateRenderer): IRenderMime.IRendererFactory {
  return {
    safe: true,
    mimeTypes: [MIME_TYPE],
    // Before text/html (60): the same output carries the static report for other front ends.
    defaultRank: 40,
    createRenderer: () => new RecordOutput(create)
  };
}
