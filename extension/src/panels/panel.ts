import { Held } from '../record';

/** One view of a compilation and its measurements. It reads these and nothing else. */
export interface Panel {
  readonly name: string;
  readonly title: string;
  /** Whether there is anything for this panel to show. */
  applies(held: Held): boolean;
  /** Fill `element`; return what is to be undone when the output goes away, if anything is. */
  render(held: Held, element: HTMLElement): (() => void) | void;
}
