/** The measurements: what was measured, how, and what came out. */

import { make, table } from '../../dom';
import { RunRecord } from '../../record';
import { Panel } from '../panel';

/** Median of the samples in seconds, or null when there are none. */
export function median(samples: readonly number[]): number | null {
  const ordered = [...samples].sort((a, b) => a - b);
  const middle = Math.floor(ordered.length / 2);
  const [low, high] = [ordered[middle - 1 + (ordered.length % 2)], ordered[middle]];
  return low === undefined || high === undefined ? null : (low + high) / 2;
}

function rate(amount: number, seconds: number, unit: string): string {
  return amount > 0 ? `${(amount / seconds / 1e9).toFixed(1)} ${unit}` : '';
}

/** Configuration, target, time, rates and error of a run; a failed run says why instead. */
export function row(run: RunRecord): string[] {
  const config = Object.entries(run.config).map(([name, value]) => `${name}=${String(value)}`);
  const start = [config.join(' ') || run.kernel, run.target];
  const seconds = median(run.samples);
  if (run.failure !== '' || seconds === null) {
    return [...start, run.failure || 'no sample was taken', '', '', ''];
  }
  const error =
    run.error === null || run.bound === null
      ? 'not checked'
      : `${run.error.toExponential(2)}, bound ${run.bound.toExponential(2)}`;
  return [
    ...start,
    `${(seconds * 1e6).toFixed(2)} µs of ${run.samples.length}`,
    rate(run.flops, seconds, 'GFLOP/s'),
    rate(run.bytes, seconds, 'GB/s'),
    error
  ];
}

export const runs: Panel = {
  name: 'runs',
  title: 'Runs',
  applies: held => held.runs.length > 0,
  render: (held, element) => {
    const heads = ['configuration', 'target', 'median time', 'arithmetic', 'traffic', 'largest error'];
    element.append(table('The measurements', heads, held.runs.map(row)));
    const methods = new Set(held.runs.map(run => run.method).filter(text => text !== ''));
    element.append(...[...methods].map(text => make('p', { class: 'tb-note' }, `Method: ${text}`)));
  }
};
