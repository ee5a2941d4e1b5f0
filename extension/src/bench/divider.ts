/** Bars between parts of a bench that share a width: they drag, and the arrow keys move them. */

import { make, onKey } from '../dom';

/** Pixels that an arrow key moves a bar. */
const STEP = 24;

/** A bar; `moved` is called with the pixels it was moved to the right. */
export function divider(label: string, moved: (by: number) => void): HTMLElement {
  const bar = make('div', {
    class: 'tbx-divider', role: 'separator', tabindex: '0', 'aria-orientation': 'vertical', 'aria-label': label,
    'aria-valuemin': '0', 'aria-valuemax': '100', 'aria-valuenow': '50'
  });
  drag(bar, moved);
  onKey(bar, event => {
    const by = { ArrowLeft: -STEP, ArrowRight: STEP }[event.key];
    if (by !== undefined) {
      event.preventDefault();
      event.stopPropagation();
      moved(by);
    }
  });
  return bar;
}

/** Say where a bar stands, for those who do not see it: the part of the width that is left of it. */
export function tellShare(bar: HTMLElement, part: number): void {
  bar.setAttribute('aria-valuenow', String(Math.round(part * 100)));
}

/** Call `moved` with the pixels that a handle was dragged to the right (or down) since the last call. */
export function drag(handle: HTMLElement, moved: (by: number) => void, vertical = false): void {
  handle.addEventListener('pointerdown', down => {
    down.preventDefault();
    handle.setPointerCapture(down.pointerId);
    let last = vertical ? down.clientY : down.clientX;
    const move = (event: PointerEvent): void => {
      const now = vertical ? event.clientY : event.clientX;
      moved(now - last);
      last = now;
    };
    const up = (): void => {
      handle.removeEventListener('pointermove', move);
      handle.removeEventListener('pointerup', up);
      handle.removeEventListener('pointercancel', up);
    };
    handle.addEventListener('pointermove', move);
    handle.addEventListener('pointerup', up);
    handle.addEventListener('pointercancel', up);
  });
}
