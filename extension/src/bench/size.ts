/** Word of a new size, for what is drawn and forgotten again without anybody saying so: the pictures in the tabs. */

const called = new WeakMap<Element, () => void>();
// One for the page. It holds no element: an observer of each picture's own would keep it, by what it calls.
let observer: ResizeObserver | null = null;

/** Call `changed` when an element has another size, as long as somebody else holds it; it may leave the page and come back. */
export function onResize(element: Element, changed: () => void): void {
  observer ??= new ResizeObserver(entries => entries.forEach(entry => called.get(entry.target)?.()));
  called.set(element, changed);
  observer.observe(element);
}
