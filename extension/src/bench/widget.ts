/** The live bench as an anywidget: the record comes packed, the state as plain data, wishes go back as messages. */

import { readOutput } from '../check';
import { make } from '../dom';
import { CompileRecord } from '../record';
import { Bench } from './bench';
import { BenchState } from './state';

/** The part of anywidget's model that is used here. */
interface Model {
  get(name: string): unknown;
  on(event: string, called: () => void): void;
  off(event: string, called: () => void): void;
  send(content: unknown): void;
}

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const state = (): BenchState => model.get('state') as BenchState;
  const bench = new Bench({ ask: what => model.send(what) });
  const name = state().id;
  // The static form of the same picture stands in the next output, for a notebook that is opened again
  // without a kernel. It is hidden as long as this view is there.
  const hide = make('style', {});
  hide.textContent =
    `[data-tilebench-fallback="${name}"]{display:none}` +
    `.jp-OutputArea-child:has(>.jp-OutputArea-output [data-tilebench-fallback="${name}"]){display:none}`;
  const gone = make('p', { class: 'tbx-gone' }, 'The kernel that made this is gone. To have working controls, run this cell again.');
  bench.element.prepend(gone);
  el.append(hide, bench.element);
  let record: CompileRecord | null = null;
  let newest = 0;
  const draw = (): void => {
    if (state().kernel !== undefined) {
      bench.show({ record, state: state() });
    }
  };
  const read = async (): Promise<void> => {
    const packed = model.get('record') as string;
    newest += 1;
    const mine = newest;
    if (packed !== '') {
      const held = await readOutput({ format: 1, packed });
      // Unpacking takes a moment, in which a newer record may have come.
      if (mine === newest) {
        record = held.record;
        draw();
      }
    }
  };
  const changed = (): void => void read();
  model.on('change:state', draw);
  model.on('change:record', changed);
  draw();
  changed();
  return () => {
    model.off('change:state', draw);
    model.off('change:record', changed);
    bench.dispose();
  };
}

export { mountAll } from './page';
export default { render };
