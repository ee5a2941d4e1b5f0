/** Benches in a page that stands alone: a report, an exported record. */

import { readOutput } from '../check';
import { FORMAT } from '../record';
import { Bench } from './bench';

/** Draw every bench of a page in place of its plain form, which stays where something does not fit. */
export async function mountAll(page: ParentNode): Promise<void> {
  for (const place of page.querySelectorAll<HTMLElement>('[data-tilebench]')) {
    try {
      const held = await readOutput({ format: FORMAT, packed: place.dataset['tilebench'] ?? '' });
      if (held.state !== null) {
        const bench = new Bench({ ask: () => undefined });
        place.replaceChildren(bench.element);
        bench.show({ record: held.record, state: held.state, gutters: held.gutters, runs: held.runs });
      }
    } catch (error) {
      // The plain form says the same; only what moves is missing.
      console.warn(error);
    }
  }
}
