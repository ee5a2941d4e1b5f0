/** The renderer of outputs that carry a record: the same bench as everywhere, without a kernel behind it. */

import { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';
import { Bench } from './bench/bench';
import { readOutput } from './check';
import { make } from './dom';
import { MARKS_MIME } from './editor/mark';
import { MIME_TYPE } from './record';

class RecordOutput extends Widget implements IRenderMime.IRenderer {
  private bench: Bench | null = null;
  private newest = 0;

  constructor() {
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
        if (held.state === null) {
          throw new Error('This record has nothing around it to be drawn with: run its cell again.');
        }
        this.clear();
        this.bench = new Bench({ ask: () => undefined });
        this.node.append(this.bench.element);
        this.bench.show({ record: held.record, state: held.state, gutters: held.gutters, runs: held.runs });
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
    this.bench?.dispose();
    this.bench = null;
    this.node.replaceChildren();
  }
}

/** The factory for the application's registry. */
export const rendererFactory: IRenderMime.IRendererFactory = {
  safe: true,
  mimeTypes: [MIME_TYPE],
  // Before text/html (60): the same output carries the plain form for other front ends.
  defaultRank: 40,
  createRenderer: () => new RecordOutput()
};

/** Marks have nothing to show: the editor above draws them. */
class MarksOutput extends Widget implements IRenderMime.IRenderer {
  constructor() {
    super();
    this.addClass('tb-marks');
  }

  async renderModel(): Promise<void> {
    // Nothing is drawn.
  }
}

/** The factory for outputs that hold marks and no more; where there is a picture beside them, that is shown. */
export const marksFactory: IRenderMime.IRendererFactory = {
  safe: true,
  mimeTypes: [MARKS_MIME],
  // Behind text/html (60), before text/plain (120).
  defaultRank: 110,
  createRenderer: () => new MarksOutput()
};
