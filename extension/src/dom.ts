/** Small helpers for building elements. Text only ever enters as text, never as markup. */

type Child = Node | string;

/** An element with attributes and children. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Give an element a text. Where it has it already nothing is touched, and nothing laid out anew. */
export function write(element: Node, text: string): void {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

/** What has the focus in the page that an element stands in: a bench may stand in a window of its own. */
export function focusedNear(element: Node): Element | null {
  return element.ownerDocument?.activeElement ?? null;
}

/** What an event says where it is an element. One that stands in another window is no `Element` of this one's. */
export function elementOf(place: unknown): HTMLElement | null {
  const node = place as Partial<Node> | null | undefined;
  return node?.nodeType === Node.ELEMENT_NODE ? (place as HTMLElement) : null;
}

/** A small button. Where its text is a sign, it is called what its `title` says. */
export function button(text: string, title: string, pressed: () => void): HTMLButtonElement {
  const called: Record<string, string> = /\p{L}/u.test(text) ? {} : { 'aria-label': title };
  const told: Record<string, string> = title === '' ? {} : { title, ...called };
  const out = make('button', { type: 'button', class: 'tbx-button', ...told }, text);
  out.addEventListener('click', pressed);
  return out;
}

// A page may hold this module more than once (a widget brings its own): ids of one must not be another's.
const scope = Math.random().toString(36).slice(2, 8);
let made = 0;

/** An id that no other element of the page has. */
export function freshId(prefix: string): string {
  made += 1;
  return `${prefix}-${scope}-${made}`;
}

/** A key that is a bench's alone: a `keydown` under a name that nobody outside listens to (see `ownKeys`). */
export const KEY = 'tbx-key';

/** Hear of keys that are pressed in a part of a bench; gives what ends that. */
export function onKey(element: Element, pressed: (event: KeyboardEvent) => void): () => void {
  const heard = pressed as (event: Event) => void;
  // Combinations, and all keys in a window where no notebook is, come as the browser tells them.
  const types = [KEY, 'keydown'];
  types.forEach(type => element.addEventListener(type, heard));
  return () => types.forEach(type => element.removeEventListener(type, heard));
}

// What ends the keys of a group as they are now: a group that gets other items keeps nothing of the old ones.
const roving = new WeakMap<HTMLElement, () => void>();

/**
 * Arrow keys, Home and End move the focus among `items`; Tab leaves the group, as in the WAI-ARIA
 * patterns of tab lists and tool bars. `moved` is called with the index that got the focus.
 */
export function rove(group: HTMLElement, items: HTMLElement[], moved?: (at: number) => void): void {
  const focus = (at: number): void => {
    items.forEach((item, index) => (item.tabIndex = index === at ? 0 : -1));
    items[at]?.focus();
    moved?.(at);
  };
  items.forEach((item, index) => (item.tabIndex = index === 0 ? 0 : -1));
  const pressed = (event: KeyboardEvent): void => {
    const now = items.findIndex(item => item === focusedNear(group));
    const last = items.length - 1;
    const next = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: last }[event.key];
    if (now < 0 || next === undefined) {
      return;
    }
    // The notebook moves between cells with arrow keys too; these are ours.
    event.preventDefault();
    event.stopPropagation();
    focus((next + items.length) % items.length);
  };
  roving.get(group)?.();
  roving.set(group, onKey(group, pressed));
}
