/** What parts of the bench add to every pane; a part adds its line here. */

import { PaneExtra } from './pane/door';

export const EXTRAS: readonly PaneExtra[] = [];
