import { CompileRecord } from '../record';

/** One view of a compilation. It reads the record and nothing else. */
export interface Panel {
  readonly name: string;
  readonly title: string;
  /** Whether the record has anything for this panel. */
  applies(record: CompileRecord): boolean;
  /** Fill `element`; return what is to be undone when the output goes away, if anything is. */
  render(record: CompileRecord, element: HTMLElement): (() => void) | void;
}
