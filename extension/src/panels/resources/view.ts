import { table } from '../../dom';
import { Held, Resources } from '../../record';
import { Panel } from '../panel';

const UNKNOWN = 'not known yet';

function bytes(count: number | null): string {
  return count === null ? UNKNOWN : `${count} B`;
}

function percent(share: number | null): string {
  return share === null ? UNKNOWN : `${(share * 100).toFixed(1)} %`;
}

/** The rows of the table: one resource each. */
export function rows(held: Resources): string[][] {
  const spills =
    held.spill_store_bytes === null
      ? UNKNOWN
      : `${held.spill_store_bytes} B stored, ${held.spill_load_bytes ?? 0} B loaded`;
  return [
    ['threads', String(held.threads)],
    ['registers a thread', held.registers === null ? UNKNOWN : String(held.registers)],
    ['shared memory', bytes(held.shared_bytes)],
    ['local memory', bytes(held.local_bytes)],
    ['spills', spills],
    ['barriers', held.barriers === null ? UNKNOWN : String(held.barriers)],
    ['blocks on a multiprocessor', held.blocks_per_sm === null ? UNKNOWN : String(held.blocks_per_sm)],
    ['occupancy', percent(held.occupancy)],
    ['limited by', held.limited_by || UNKNOWN]
  ];
}

export const resources: Panel = {
  name: 'resources',
  title: 'Resources',
  applies: ({ record }) => record.resources !== null,
  render: ({ record }: Held, element: HTMLElement) => {
    const held = record.resources;
    if (held === null) {
      return;
    }
    element.append(table('What one block takes', ['resource', 'amount'], rows(held)));
    const limits = Object.entries(held.limits);
    if (limits.length > 0) {
      element.append(
        table(
          'Blocks that a multiprocessor could hold by each resource alone',
          ['resource', 'blocks'],
          limits.map(([name, count]) => [name, String(count)])
        )
      );
    }
  }
};
