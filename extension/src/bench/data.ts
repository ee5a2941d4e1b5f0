/** What goes in and out of a bench: a record with the state around it, and the wishes of whoever looks at it. */

import { CompileRecord, RunRecord } from '../record';
import { BenchState, Block, GutterData } from './state';

/**
 * What a bench asks of whoever holds it. A control is set by the number of its value, or by what was typed; `number`
 * counts the moves of a view, which a state names that has the move in it.
 */
export type Ask =
  | { readonly kind: 'set'; readonly name: string; readonly index: number; readonly text: string; readonly view: string; readonly number: number }
  | { readonly kind: 'target'; readonly text: string }
  | { readonly kind: 'toggle'; readonly name: 'run' | 'check'; readonly on: boolean }
  | { readonly kind: 'stages'; readonly names: readonly string[] }
  | { readonly kind: 'restore'; readonly number: number }
  | { readonly kind: 'edit'; readonly stage: string; readonly text: string }
  /** Without a stage every edit is taken back. */
  | { readonly kind: 'revert'; readonly stage: string }
  | { readonly kind: 'edited'; readonly number: number }
  | { readonly kind: 'look'; readonly tab: string }
  | { readonly kind: 'save'; readonly what: string }
  | { readonly kind: 'pin'; readonly name: string }
  /** With a pin or a target; with nothing of its own, the texts are compared with the bench's past. */
  | { readonly kind: 'compare'; readonly what: 'pin' | 'target' | ''; readonly name: string }
  | { readonly kind: 'go'; readonly text: string }
  | { readonly kind: 'sweep'; readonly on: boolean }
  | { readonly kind: 'timeline' }
  | { readonly kind: 'count'; readonly name: string }
  | { readonly kind: 'again' }
  | { readonly kind: 'stop' };

export interface Host {
  ask(what: Ask): void;
}

/** Blocks that come apart from a live bench's state, by the names of their tabs; behind the tab's own. */
export type Apart = Readonly<Record<string, readonly Block[]>>;

/** A record with the state around it. */
export interface Picture {
  readonly record: CompileRecord | null;
  readonly state: BenchState;
  readonly gutters: readonly GutterData[];
  readonly apart?: Apart;
  /** What texts are compared with, where the kernel's side was asked for it. */
  readonly other?: CompileRecord | null;
  /** The measurements, where the page has them. */
  readonly runs?: readonly RunRecord[];
}
