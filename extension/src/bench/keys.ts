/**
 * Keys belong to a bench while the focus is in it. A notebook in command mode has commands on plain keys: arrows
 * move between cells, `x` cuts one, Enter edits one. It must not see them: it looks at keys before they reach us, and
 * keeps each that it has seen, with all that the key passed through, until a command is run by keys, and so a bench
 * that is long closed (JupyterLab 4.6: `_holdKeyBindingPromises`, and `_lastTarget` of a cell). Combinations with Ctrl,
 * Alt or Cmd stay the notebook's.
 */

import { elementOf, KEY } from '../dom';

/** Keep plain keys that are pressed in `element` to those in it that listen by `onKey`; gives what ends that. */
export function ownKeys(element: HTMLElement): () => void {
  const take = (event: KeyboardEvent): void => {
    const place = elementOf(event.target);
    if (place === null || !element.contains(place) || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    // What the browser does by itself with a key (typing, moving a slider, Tab) is not touched by this.
    event.stopPropagation();
    const { key, code, location, shiftKey, repeat, isComposing } = event;
    const own = new KeyboardEvent(KEY, { key, code, location, shiftKey, repeat, isComposing, bubbles: true, cancelable: true });
    if (!place.dispatchEvent(own)) {
      event.preventDefault();
    }
  };
  // The window comes first of all who listen: the notebook listens at the document.
  window.addEventListener('keydown', take, { capture: true });
  return () => window.removeEventListener('keydown', take, { capture: true });
}
