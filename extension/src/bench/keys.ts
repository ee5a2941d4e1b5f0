/**
 * Keys belong to a bench while the focus is in it. A notebook in command mode has commands on plain keys: arrows
 * move between cells, `x` cuts one, Enter edits one. It looks at them before they reach us, except where an
 * element says that its keys are its own; combinations with Ctrl, Alt or Cmd stay the notebook's.
 */

import { elementOf } from '../dom';

const OWN = 'data-lm-suppress-shortcuts';

/** Keep the notebook's plain keys away from what is in `element`; gives what ends that. */
export function ownKeys(element: HTMLElement): () => void {
  const decide = (event: KeyboardEvent): void => {
    // On what has the focus itself: the notebook's commands are for any element that has it.
    const place = elementOf(event.target);
    if (place !== null && element.contains(place)) {
      place.toggleAttribute(OWN, !event.ctrlKey && !event.metaKey && !event.altKey);
    }
  };
  // The window comes first of all who listen: the notebook listens at the document.
  window.addEventListener('keydown', decide, { capture: true });
  return () => window.removeEventListener('keydown', decide, { capture: true });
}
