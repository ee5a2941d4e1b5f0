/** The live bench as an anywidget: the record comes packed, the state as plain data, wishes go back as messages. */

import { readApart, readOutput } from '../check';
import { make } from '../dom';
import { CompileRecord, FORMAT } from '../record';
import { Bench } from './bench';
import { Apart } from './data';
import { Block } from './block_data';
import { BenchState, ChartData, GutterData, StatusData } from './state';

/** The part of anywidget's model that is used here. */
interface Model {
  get(name: string): unknown;
  on(event: string, called: () => void): void;
  off(event: string, called: () => void): void;
  send(content: unknown): void;
}

interface Measured {
  readonly chart: ChartData | null;
  readonly sweep: readonly Block[];
}

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const bench = new Bench({ ask: what => model.send(what) });
  // What is measured comes apart, where another run has come; the same two parts are the same state.
  let joined: { state: unknown; measured: unknown; whole: BenchState } | null = null;
  const base = (): BenchState => {
    const [state, measured] = [model.get('state') as BenchState, model.get('measured') as Measured];
    if (joined?.state !== state || joined.measured !== measured) {
      const tabs = (state.tabs ?? []).map(tab => (tab.name === 'sweep' ? { ...tab, blocks: measured.sweep } : tab));
      joined = { state, measured, whole: { ...state, chart: measured.chart, tabs } };
    }
    return joined.whole;
  };
  // While work runs the status comes by itself: it is the newer one.
  const status = (): StatusData => (model.get('status') as StatusData | undefined) ?? base().status;
  const name = base().id;
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
  let gutters: readonly GutterData[] = [];
  let apart: Apart = {};
  let newest = 0;
  let drawn: BenchState | null = null;
  let waiting = false;
  let newestApart = 0;
  // What is being unpacked when a view ends comes behind its end.
  let ended = false;
  const draw = (): void => {
    const state = base();
    if (state.kernel !== undefined && !ended) {
      drawn = state;
      bench.show({ record, state: { ...state, status: status() }, gutters, apart, other });
    }
  };
  // Of what comes in one message each part calls: it is drawn once.
  const changed = (): void => {
    if (waiting) {
      return;
    }
    waiting = true;
    queueMicrotask(() => {
      waiting = false;
      if (ended) {
        return;
      }
      if (base() === drawn) {
        bench.showStatus(status());
      } else {
        draw();
      }
    });
  };
  const read = async (): Promise<void> => {
    const packed = model.get('record') as string;
    newest += 1;
    const mine = newest;
    if (packed !== '') {
      const held = await readOutput({ format: FORMAT, packed });
      // Unpacking takes a moment, in which a newer record may have come.
      if (mine === newest) {
        [record, gutters] = [held.record, held.gutters];
        draw();
      }
    }
  };
  let other: CompileRecord | null = null;
  let newestOther = 0;
  const readOther = async (): Promise<void> => {
    const packed = model.get('other') as string | undefined;
    newestOther += 1;
    const mine = newestOther;
    const found = packed === undefined || packed === '' ? null : (await readOutput({ format: FORMAT, packed })).record;
    if (mine === newestOther && found !== other) {
      other = found;
      draw();
    }
  };
  const readPictures = async (): Promise<void> => {
    newestApart += 1;
    const mine = newestApart;
    const held = await readApart((model.get('apart') as string | undefined) ?? '');
    if (mine === newestApart) {
      apart = held;
      draw();
    }
  };
  const came = (): void => void read();
  const pictured = (): void => void readPictures();
  const compared = (): void => void readOther();
  model.on('change:state', changed);
  model.on('change:status', changed);
  model.on('change:measured', changed);
  model.on('change:record', came);
  model.on('change:apart', pictured);
  model.on('change:other', compared);
  draw();
  came();
  pictured();
  compared();
  return () => {
    model.off('change:state', changed);
    model.off('change:status', changed);
    model.off('change:measured', changed);
    model.off('change:record', came);
    model.off('change:apart', pictured);
    model.off('change:other', compared);
    ended = true;
    bench.dispose();
    // Jupyter's widgets keep the place of a view that has ended, and the page with it would grow with every run.
    el.replaceChildren();
  };
}

export { mountAll } from './page';
export default { render };
