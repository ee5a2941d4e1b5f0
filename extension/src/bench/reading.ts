/** How a reader looks at a text, apart from the text: what a new version of it takes over. */

import { Fold } from './text/rows';

/** What a reader did to a pane. */
export interface Reading {
  readonly wrap: boolean;
  readonly current: number;
  readonly folds: readonly Fold[];
  readonly lines: number;
  readonly top: number;
  readonly left: number;
  readonly focused: boolean;
}
