/**
 * A part of the application in a browser window of its own: on another screen, say. Its elements stand in that window's
 * page and belong to this one, whose scripts work on; it goes when this page goes.
 */

import { Widget } from '@lumino/widgets';
import { make } from './dom';

const STYLE = 'body{margin:0!important;overflow:hidden}body>.lm-Widget{position:absolute;inset:0;overflow:auto;padding:4px}';
const opened = new Set<Window>();

/** The pages in which something of the application stands: its own and those of its windows. */
export function pages(): Document[] {
  return [document, ...[...opened].map(each => each.document)];
}

/** Show a widget in a window; gives its page, or null (and the widget is gone) where the browser opens none. */
export function openWindow(widget: Widget): Document | null {
  const view = window.open('', '', 'popup,width=1280,height=860');
  if (view === null) {
    widget.dispose();
    return null;
  }
  opened.add(view);
  const page = view.document;
  page.title = widget.title.label;
  page.documentElement.lang = document.documentElement.lang;
  dress(page);
  // Another theme is another style sheet and another word at the body.
  const themes = new MutationObserver(() => dress(page));
  themes.observe(document.body, { attributeFilter: ['data-jp-theme-light', 'data-jp-theme-name'] });
  Widget.attach(widget, page.body);
  const close = (): void => view.close();
  view.addEventListener('pagehide', () => {
    opened.delete(view);
    themes.disconnect();
    window.removeEventListener('pagehide', close);
    widget.dispose();
  });
  window.addEventListener('pagehide', close);
  widget.disposed.connect(close);
  return page;
}

/** Give a page the looks of this one. */
function dress(page: Document): void {
  const sheets = [...document.querySelectorAll('link[rel=stylesheet], style')].filter(each => each.closest('.tbx, .jp-OutputArea') === null);
  page.head.replaceChildren(...sheets.map(each => page.importNode(each, true)), make('style', {}, STYLE), make('title', {}, page.title));
  for (const { name, value } of document.body.attributes) {
    page.body.setAttribute(name, value);
  }
}
