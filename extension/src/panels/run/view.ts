/** One measurement: what was measured, how, and what came out. */

import { make, table } from '../../dom';
import { RunRecord } from '../../record';

/** Median of the samples in seconds, or null when there are none. */
export function median(samples: readonly number[]): number | null {
  const ordered = [...samples].sort((a, b) => a - b);
  const middle = Math.floor(ordered.length / 2);
  const [low, high] = [ordered[middle - 1 + (ordered.length % 2)], ordered[middle]];
  return low === undefined || high === undefined ? null : (low + high) / 2;
}

/** Rows of a run: the failure alone when there is one, else time, rate and error. */
export function rows(run: RunRecord): string[][] {
  const seconds = median(run.samples);
  if (run.failure !== '' || seconds === null) {
    return [['failed', run.failure || 'no sample was taken']];
  }
  const out = [['time', `${(seconds * 1e6).toFixed(2)} µs, median of ${run.samples.length}`]];
  if (run.flops > 0) {
    out.push(['arithmetic', `${(run.flops / seconds / 1e9).toFixed(1)} GFLOP/s`]);
  }
  if (run.bytes > 0) {
    out.push(['traffic', `${(run.bytes / seconds / 1e9).toFixed(1)} GB/s`]);
  }
  if (run.error !== null && run.bound !== null) {
    out.push(['largest error', `${run.error.toExponential(2)}, bound ${run.bound.toExponential(2)}`]);
  }
  out.push(['method', run.method], ['when', run.when]);
  return out;
}

/** Draw a measurement into `element`. */
export function renderRun(run: RunRecord, element: HTMLElement): void {
  const config = Object.entries(run.config).map(([name, value]) => `${name}=${String(value)}`);
  element.append(
    make('div', { class: 'tb-heading' }, make('strong', {}, run.kernel), ` on ${run.target} `, config.join(', ')),
    table('The measurement', ['what', 'value'], rows(run)),
    table('Measured with', ['part', 'version or state'], Object.entries(run.environment))
  );
}
