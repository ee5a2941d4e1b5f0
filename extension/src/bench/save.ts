/**
 * What can be kept of a bench: files that the kernel's side writes, the position as a line, and, where no kernel
 * answers, what is in the page itself as downloads.
 */

import { button, elementOf, focusedNear, freshId, make, onKey } from '../dom';
import { FORMAT } from '../record';
import { Ask, Picture } from './data';
import { zipped } from './zip';

const FILES: readonly [string, string, string][] = [
  ['kernel', 'Kernel + schedule', 'a Python file that checks and times the kernel without Jupyter, and a schedule file'],
  ['record', 'Record (.tbz)', 'the compilation with all runs: tilebench.open_record reads it'],
  ['program', 'Program', "the kernel in its target's own language, with a main that launches and times it"],
  ['measurement', 'Measurement', 'a script that repeats the runs of this position, beside what they were']
];

/** How the file of a stage's text ends, by its language. */
const ENDINGS: Readonly<Record<string, string>> = {
  python: 'py', 'tile-ir': 'py', cuda: 'cu', ptx: 'ptx', nvsass: 'sass', llvm: 'll', gas: 's'
};

export class SaveMenu {
  readonly element: HTMLElement;
  private readonly opener: HTMLElement;
  private readonly list = make('div', { class: 'tbx-save-list', id: freshId('tbx-save'), role: 'group', 'aria-label': 'save', hidden: '' });
  private readonly line = make('input', { class: 'tbx-save-line', type: 'text', 'aria-label': 'position as a line', spellcheck: 'false' });
  private readonly said = make('span', { class: 'tbx-quiet', role: 'status' });
  private picture: Picture | null = null;
  private position = '';
  private drawn = '';

  constructor(private readonly ask: (what: Ask) => void) {
    this.opener = button('Save \u25be', 'files of this kernel, its record, its measurement; its position as a line', () => this.open(this.list.hidden));
    this.opener.setAttribute('aria-expanded', 'false');
    this.opener.setAttribute('aria-controls', this.list.id);
    this.element = make('span', { class: 'tbx-save', 'data-lm-suppress-shortcuts': 'true' }, this.opener, this.list);
    onKey(this.element, event => {
      event.stopPropagation();
      if (event.key === 'Escape') {
        this.open(false);
        this.opener.focus();
      } else if (event.key === 'Enter' && event.target === this.line) {
        event.preventDefault();
        this.go();
      }
    });
    this.element.addEventListener('focusout', event => {
      if (!this.element.contains(elementOf(event.relatedTarget))) {
        this.open(false);
      }
    });
  }

  show(picture: Picture): void {
    this.picture = picture;
    const { live, position } = picture.state;
    // What somebody is typing there is left alone.
    if (position !== this.position && focusedNear(this.line) !== this.line) {
      this.line.value = position;
    }
    this.position = position;
    this.element.hidden = !live && picture.record === null;
    if (this.drawn !== String(live)) {
      this.drawn = String(live);
      this.list.replaceChildren(...(live ? this.livePart() : this.pagePart()), this.said);
    }
  }

  private open(on: boolean): void {
    this.list.hidden = !on;
    this.opener.setAttribute('aria-expanded', String(on));
    this.said.textContent = '';
    if (on) {
      this.list.querySelector<HTMLElement>('button')?.focus();
    }
  }

  private livePart(): HTMLElement[] {
    const items = FILES.map(([what, name, title]) => this.item(name, title, () => {
      this.ask({ kind: 'save', what });
      this.open(false);
      this.opener.focus();
    }));
    const copy = button('Copy', 'copy the position', () => void this.copy());
    const go = button('Go', 'go to the position that the line says (Enter)', () => this.go());
    return [...items, make('div', { class: 'tbx-save-position' }, make('span', {}, 'Position'), this.line, copy, go)];
  }

  private pagePart(): HTMLElement[] {
    const record = this.item('Record (.tbz)', 'the compilation in this page, as a file that tilebench.open_record reads', () => void this.download());
    const texts = (this.picture?.record?.stages ?? []).filter(stage => stage.text !== '').map(stage =>
      this.item(`Text of ${stage.name}`, `the stage ${stage.name} as a file`, () => {
        const name = `${this.picture?.state.kernel ?? 'kernel'}.${stage.name}.${ENDINGS[stage.language] ?? 'txt'}`;
        hand(name, new Blob([stage.text], { type: 'text/plain' }));
      })
    );
    return [record, ...texts];
  }

  private item(name: string, title: string, pressed: () => void): HTMLElement {
    const out = button(name, title, pressed);
    return make('div', {}, out, make('span', { class: 'tbx-quiet' }, title));
  }

  private go(): void {
    this.ask({ kind: 'go', text: this.line.value });
    this.open(false);
    this.opener.focus();
  }

  private async copy(): Promise<void> {
    try {
      await (this.line.ownerDocument.defaultView ?? window).navigator.clipboard.writeText(this.line.value);
      this.said.textContent = 'Copied: %%tile takes it, and so does go() of a bench.';
    } catch {
      // A page that may not write to the clipboard: the line is selected, for the keys that may.
      this.line.focus();
      this.line.select();
      this.said.textContent = 'Press Ctrl+C: this page may not copy by itself.';
    }
  }

  private async download(): Promise<void> {
    const record = this.picture?.record;
    if (record) {
      const body = JSON.stringify({ format: FORMAT, kind: 'bench', record: { compilation: record, runs: this.picture?.runs ?? [] } });
      hand(`${record.kernel}.tbz`, await zipped('record.json', body));
    }
  }
}

/** Give a file to whoever looks at the page. */
function hand(name: string, body: Blob): void {
  const link = make('a', { href: URL.createObjectURL(body), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
