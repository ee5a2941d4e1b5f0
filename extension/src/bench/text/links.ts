/** Which lines of two stages belong together: those that came from a common line of the user's source. */

import { CompileRecord, StageRecord } from '../../record';

/** The relations of one stage: source lines of each of its lines, and its lines of each source line. */
export class Kin {
  private readonly below = new Map<number, number[]>();
  private readonly above: (readonly number[])[];

  constructor(record: CompileRecord, stage: StageRecord, count: number) {
    this.above = Array.from({ length: count }, (_, at) => {
      const known = stage.lines[at];
      if (known !== undefined) {
        return known;
      }
      return stage.name === 'source' && stage.lines.length === 0 ? [record.source_first_line + at] : [];
    });
    this.above.forEach((sources, at) => {
      for (const source of sources) {
        const held = this.below.get(source);
        if (held === undefined) {
          this.below.set(source, [at]);
        } else {
          held.push(at);
        }
      }
    });
  }

  /** Lines of the user's source behind a line (from 0) of the stage. */
  sources(at: number): readonly number[] {
    return this.above[at] ?? [];
  }

  /** The lines (from 0, ascending) of the stage that came from any of these source lines. */
  lines(sources: Iterable<number>): number[] {
    const out = new Set<number>();
    for (const source of sources) {
      this.below.get(source)?.forEach(at => out.add(at));
    }
    return [...out].sort((a, b) => a - b);
  }
}

/** The start of the stretch of `height` lines that holds most of `lines` (ascending); the first of equals. */
export function densest(lines: readonly number[], height: number): number {
  let [best, most, first] = [lines[0] ?? 0, 0, 0];
  lines.forEach((line, at) => {
    while (line - lines[first]! >= height) {
      first += 1;
    }
    if (at - first + 1 > most) {
      [best, most] = [lines[first]!, at - first + 1];
    }
  });
  return best;
}
