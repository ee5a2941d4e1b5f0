/** Which lines of two stages belong together: those that came from a common line of the source. */

import { CompileRecord, StageRecord } from '../../record';

/** Lines of the user's source behind line `at` (from 0) of a stage. */
export function origins(record: CompileRecord, stage: StageRecord, at: number): readonly number[] {
  const known = stage.lines[at];
  if (known !== undefined) {
    return known;
  }
  return stage.name === 'source' && stage.lines.length === 0 ? [record.source_first_line + at] : [];
}

/** For each line of the source, the lines (from 0) of `stage` that came from it. */
export function descendants(record: CompileRecord, stage: StageRecord): Map<number, number[]> {
  const out = new Map<number, number[]>();
  stage.text.split('\n').forEach((_, at) => {
    for (const source of origins(record, stage, at)) {
      const held = out.get(source);
      if (held === undefined) {
        out.set(source, [at]);
      } else {
        held.push(at);
      }
    }
  });
  return out;
}

/** The stages to open first: the first, one in the middle where layouts are decided, the last text. */
export function openedFirst(stages: readonly StageRecord[]): string[] {
  const names = stages.filter(stage => !stage.pending).map(stage => stage.name);
  const middle = names.find(name => name === 'laid_out' || name === 'loops');
  const wanted = [names[0], middle, names[names.length - 1]];
  return [...new Set(wanted.filter((name): name is string => name !== undefined))];
}
