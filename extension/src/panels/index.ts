/** The list of panels, and the tabs around them. A new panel is a folder here and a row in PANELS. */

import { freshId, make, rove } from '../dom';
import { CompileRecord, Held } from '../record';
import { Panel } from './panel';
import { remarks } from './remarks/view';
import { resources } from './resources/view';
import { runs } from './runs/view';
import { schedule } from './schedule/view';
import { stages } from './stages/view';

export const PANELS: readonly Panel[] = [stages, resources, schedule, remarks, runs];

/** Draw a compilation with `more` panels behind ours; the result undoes what was started. */
export function renderHeld(held: Held, element: HTMLElement, more: readonly Panel[] = []): () => void {
  const record = held.record;
  const shown = [...PANELS, ...more].filter(panel => panel.applies(held));
  const bar = make('div', { class: 'tb-tabs', role: 'tablist', 'aria-label': `Views of ${record.kernel}` });
  const undo: (() => void)[] = [];
  const bodies: HTMLElement[] = [];
  const tabs = shown.map(panel => {
    const [tabId, bodyId] = [freshId('tb-tab'), freshId('tb-panel')];
    const tab = make('button', { id: tabId, role: 'tab', type: 'button', 'aria-controls': bodyId }, panel.title);
    bodies.push(
      make('div', { id: bodyId, class: 'tb-panel', role: 'tabpanel', 'aria-labelledby': tabId, 'data-panel': panel.name })
    );
    bar.append(tab);
    return tab;
  });
  const drawn = new Set<number>();
  const select = (chosen: number): void => {
    tabs.forEach((tab, at) => tab.setAttribute('aria-selected', String(at === chosen)));
    bodies.forEach((body, at) => (body.hidden = at !== chosen));
    const [panel, body] = [shown[chosen], bodies[chosen]];
    if (panel !== undefined && body !== undefined && !drawn.has(chosen)) {
      drawn.add(chosen);
      const after = panel.render(held, body);
      if (after) {
        undo.push(after);
      }
    }
  };
  rove(bar, tabs, select);
  tabs.forEach((tab, at) => {
    tab.addEventListener('click', () => {
      tabs.forEach((other, index) => (other.tabIndex = index === at ? 0 : -1));
      select(at);
    });
  });
  element.append(heading(record), bar, ...bodies);
  select(0);
  return () => undo.forEach(each => each());
}

function heading(record: CompileRecord): HTMLElement {
  const given = Object.entries(record.parameters).map(([name, value]) => `${name}=${String(value)}`);
  return make(
    'div',
    { class: 'tb-heading' },
    make('strong', {}, record.kernel),
    ` for ${record.target}`,
    given.length > 0 ? ` with ${given.join(', ')}` : '',
    `, compiled in ${(record.seconds * 1000).toFixed(0)} ms`
  );
}
