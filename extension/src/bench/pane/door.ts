/**
 * The door into a pane: what the row of panes hears of it, and what other parts of a bench add to it.
 *
 * A part that adds something is a function in the list of `extras.ts`, which gives a `PaneExtra` for one bench. That is
 * asked anew whenever a pane is made or drawn again.
 */

import { CompileRecord, StageRecord } from '../../record';
import { Ask, Picture } from '../data';
import { Kin } from '../text/links';

/** A pane, as those outside of it see it. Lines count from 0. */
export interface PaneView {
  readonly record: CompileRecord;
  readonly stage: StageRecord;
  readonly lines: readonly string[];
  readonly kin: Kin;
  readonly element: HTMLElement;
  readonly current: number;
  readonly hasFocus: boolean;
  focus(): void;
  /** Draw the rows again: what a gutter, an explanation or a button says has changed. */
  redraw(): void;
  /** Put an element in the place of the text, an editor for example; null puts the text back. */
  instead(element: HTMLElement | null): void;
}

/** What a pane tells the row of panes that it stands in. */
export interface PaneHost {
  /** What other parts add to each pane. */
  readonly extras: readonly PaneExtra[];
  /** The line under the pointer or the keyboard; null when it left. */
  pointed(pane: PaneView, line: number | null): void;
  pinned(pane: PaneView, line: number): void;
  /** A command by key, such as `m` to maximise. Whether it was one. */
  command(pane: PaneView, key: string): boolean;
  /** Say something to whoever looks, in the bar of the bench. */
  say(text: string): void;
  /** Ask something of the kernel's side. */
  ask(what: Ask): void;
}

/**
 * A button in the header of a pane; its key works while the pane has the focus. `pressed` makes it a toggle. One without a
 * text is a key alone.
 */
export interface PaneButton {
  readonly text: string;
  readonly name: string;
  readonly key: string;
  readonly pressed?: boolean;
  press(): void;
}

/** What a gutter has for one line: a short text, a shade from 0 to 1, and in words what that means. */
export interface GutterCell {
  readonly text: string;
  readonly weight: number;
  readonly says: string;
}

/**
 * A column beside the line numbers, `columns` letters wide; where there is no room, `narrow` letters (0: it is left out).
 * `total` stands in the pane's header, and `says` what it is.
 */
export interface Gutter {
  readonly name: string;
  readonly title: string;
  readonly columns: number;
  readonly narrow: number;
  readonly total: string;
  readonly says: string;
  cell(line: number): GutterCell | null;
}

/** A token of a line: characters `start` to `start + text.length`, of a kind of `highlight.ts`. */
export interface Token {
  readonly text: string;
  readonly kind: string;
  readonly start: number;
}

/** The bench that something is added to. */
export interface ExtraBench {
  say(text: string): void;
  ask(what: Ask): void;
  /** Draw every pane again. */
  redraw(): void;
}

/** What a part of the bench adds to every pane. */
export interface PaneExtra {
  /** Its element in the bar above the panes. */
  readonly tool?: HTMLElement;
  /** A new picture has come; the panes are drawn after this. */
  shown?(picture: Picture): void;
  /** Buttons of its header, in front of the pane's own. */
  buttons?(pane: PaneView): readonly PaneButton[];
  /** Columns beside its line numbers, from left to right. */
  gutters?(pane: PaneView): readonly Gutter[];
  /** A pane has been made, and goes into the page in a moment. */
  made?(pane: PaneView): void;
  /** What is said of a token where the pointer rests on it, or on the key `i`; empty for nothing. Asked of each drawn token. */
  explains?(pane: PaneView, line: number, token: Token): string;
}
