/** What parts of the bench add to every pane; a part adds its line here. */

import { CellLink } from './cell/extra';
import { Counts } from './counts';
import { Explanations } from './explain/extra';
import { ExtraBench, PaneExtra } from './pane/door';
import { SAID } from './said';

export const EXTRAS: readonly ((bench: ExtraBench) => PaneExtra)[] = [bench => new Counts(bench), bench => new CellLink(bench), () => SAID, bench => new Explanations(bench)];
