// Written by generate_record.py from tilebench/workbench/front/state.py; change it there.

import { TabData } from './block_data';

export * from './block_data';

/**
 * A small figure. `tone` is empty, or `good`, `bad`, `warn`, `quiet`, `on`; so everywhere below.
 */
export interface Chip {
  readonly text: string;
  readonly tone: string;
}

/**
 * What is going on. `elapsed` in seconds, None while nothing runs; `part` done, 0 to 1, or None.
 */
export interface StatusData {
  readonly phase: string;
  readonly text: string;
  readonly tone: string;
  readonly elapsed: number | null;
  readonly part: number | null;
}

/**
 * One control. `labels` are its values in order, `index` the one of now; without labels it is typed.
 *
 * `kind` is `knob`, `choice` (of the schedule) or `launch` (a value of the call).
 */
export interface ControlData {
  readonly name: string;
  readonly labels: readonly string[];
  readonly index: number;
  readonly text: string;
  readonly kind: string;
}

/**
 * One measured position. Times in seconds, rates in units a second; `values` are those that vary.
 *
 * `intensity` is FLOP a byte of compulsory traffic, `flops` FLOP a second: its place under a roof. `edited`
 * says that a person wrote a stage of it. `step` is how far it stands from the fastest: 0 the fastest and
 * what cannot be told apart from it, 1 to 4 further and further, -1 where nothing can be said; `to_best`
 * says it in words.
 */
export interface PointData {
  readonly number: number;
  readonly label: string;
  readonly seconds: number | null;
  readonly low: number | null;
  readonly high: number | null;
  readonly time: string;
  readonly rate: number | null;
  readonly rate_low: number | null;
  readonly rate_high: number | null;
  readonly rate_text: string;
  readonly failure: string;
  readonly flagged: string;
  readonly runs: string;
  readonly values: Readonly<Record<string, string>>;
  readonly intensity: number | null;
  readonly flops: number | null;
  readonly edited: boolean;
  readonly step: number;
  readonly to_best: string;
}

/**
 * A position of a sweep without a time: its values among those that vary, `illegal` or `failed`, why.
 */
export interface RefusedData {
  readonly label: string;
  readonly values: Readonly<Record<string, string>>;
  readonly state: string;
  readonly why: string;
}

/**
 * Another implementation on the same arrays; `to_best` is its time beside the fastest position's.
 */
export interface OtherData {
  readonly name: string;
  readonly seconds: number | null;
  readonly low: number | null;
  readonly high: number | null;
  readonly time: string;
  readonly rate: number | null;
  readonly rate_low: number | null;
  readonly rate_high: number | null;
  readonly rate_text: string;
  readonly to_best: string;
  readonly failure: string;
}

/**
 * The measured positions. `leader` is the fastest's number, `decided` whether noise cannot explain it.
 *
 * `alike` says that all compute as much, so that their times can be compared; `swept` are the names of a
 * sweep, the first two those of a map.
 * `roof_flops` and `roof_bytes` are measured ceilings a second; a roofline is drawn where both are known.
 */
export interface ChartData {
  readonly points: readonly PointData[];
  readonly unit: string;
  readonly ceiling: number | null;
  readonly ceiling_text: string;
  readonly varied: readonly string[];
  readonly leader: number | null;
  readonly decided: boolean;
  readonly method: readonly string[];
  readonly target: string;
  readonly roof_flops: number | null;
  readonly roof_bytes: number | null;
  readonly alike: boolean;
  readonly swept: readonly string[];
  readonly refused: readonly RefusedData[];
  readonly others: readonly OtherData[];
}

/**
 * The sweep that a bench was opened with. `state` is empty before it has begun.
 *
 * `text` says how far it is, `part` (0 to 1) too while it runs; `button` is what its button says, `title`
 * what that does.
 */
export interface SweepData {
  readonly state: string;
  readonly text: string;
  readonly tone: string;
  readonly part: number | null;
  readonly button: string;
  readonly title: string;
}

/**
 * A way to have figures of lines that takes more than what is made anyway.
 */
export interface CountWay {
  readonly name: string;
  readonly title: string;
}

/**
 * What a gutter has beside a line: a short text, a shade in percent, and in words what that means.
 */
export interface GutterCellData {
  readonly text: string;
  readonly shade: number;
  readonly says: string;
}

/**
 * A column beside the line numbers: `stages[name][k]` is the number of line k+1's cell, -1 for none.
 *
 * `choice` says that a person chooses among such: one counter at a time. Others are switched on and off.
 * `total` stands in a pane's header, `says` is what was counted and how. `narrow` letters of a cell are
 * shown where there is no room for all.
 */
export interface GutterData {
  readonly name: string;
  readonly title: string;
  readonly total: string;
  readonly says: string;
  readonly choice: boolean;
  readonly cells: readonly GutterCellData[];
  readonly stages: Readonly<Record<string, readonly number[]>>;
  readonly narrow: number;
}

/**
 * Why a wish could not be had: its first line, and the rest with the quoted line and carets.
 *
 * Where it is about edited text, `stage` and `line` (from 1) are where it stands there, and the characters
 * from `column` to `end` are meant.
 */
export interface ProblemData {
  readonly what: string;
  readonly text: string;
  readonly stage: string;
  readonly line: number;
  readonly column: number;
  readonly end: number;
}

/**
 * An edit that was made on a bench: its name, its position in words, whether it is shown now.
 */
export interface KeptEditData {
  readonly number: number;
  readonly label: string;
  readonly position: string;
  readonly here: boolean;
}

/**
 * The stages whose texts compile on, those that are edited now, and every edit, oldest first.
 */
export interface EditsData {
  readonly editable: readonly string[];
  readonly edited: readonly string[];
  readonly kept: readonly KeptEditData[];
}

/**
 * What the texts are compared with: a `pin` or a `target`, its name, and what is said of it.
 */
export interface ComparedData {
  readonly kind: string;
  readonly name: string;
  readonly said: string;
}

/**
 * All that stands around a record.
 *
 * `live` says that a kernel answers. `stale` says of which position the picture is, empty where it is the
 * wished one's. `stages` are all of the road, `shown` those to show, `asked` whether somebody chose them;
 * `titles` are the names of languages. `idle` says which controls are not shown, as they change nothing on
 * this target. `heard` has of each view that moved a control the number of the last move that is in here.
 * `position` is that of the controls as a line, and `notice` what came of something that was
 * asked for. `here` is the number of the position of now in the chart, `now` its values, `moved` the name of
 * what was moved last.
 */
export interface BenchState {
  readonly id: string;
  readonly kernel: string;
  readonly live: boolean;
  readonly status: StatusData;
  readonly target: string;
  readonly stages: readonly string[];
  readonly shown: readonly string[];
  readonly asked: boolean;
  readonly stale: string;
  readonly targets: readonly string[];
  readonly run: boolean;
  readonly check: boolean;
  readonly controls: readonly ControlData[];
  readonly heard: Readonly<Record<string, number>>;
  readonly idle: string;
  readonly titles: Readonly<Record<string, string>>;
  readonly chips: readonly Chip[];
  readonly notes: readonly string[];
  readonly problem: ProblemData | null;
  readonly tabs: readonly TabData[];
  readonly chart: ChartData | null;
  readonly edits: EditsData;
  readonly position: string;
  readonly notice: string;
  readonly pins: readonly string[];
  readonly compared: ComparedData | null;
  readonly here: number | null;
  readonly now: Readonly<Record<string, string>>;
  readonly moved: string;
  readonly sweep: SweepData | null;
  readonly countable: readonly CountWay[];
}

/** The shapes above as data, for a check of what came in. */
export const SHAPES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  Chip: {
    text: 'string',
    tone: 'string'
  },
  StatusData: {
    phase: 'string',
    text: 'string',
    tone: 'string',
    elapsed: 'number?',
    part: 'number?'
  },
  ControlData: {
    name: 'string',
    labels: '[string]',
    index: 'number',
    text: 'string',
    kind: 'string'
  },
  PointData: {
    number: 'number',
    label: 'string',
    seconds: 'number?',
    low: 'number?',
    high: 'number?',
    time: 'string',
    rate: 'number?',
    rate_low: 'number?',
    rate_high: 'number?',
    rate_text: 'string',
    failure: 'string',
    flagged: 'string',
    runs: 'string',
    values: '{string}',
    intensity: 'number?',
    flops: 'number?',
    edited: 'boolean',
    step: 'number',
    to_best: 'string'
  },
  RefusedData: {
    label: 'string',
    values: '{string}',
    state: 'string',
    why: 'string'
  },
  OtherData: {
    name: 'string',
    seconds: 'number?',
    low: 'number?',
    high: 'number?',
    time: 'string',
    rate: 'number?',
    rate_low: 'number?',
    rate_high: 'number?',
    rate_text: 'string',
    to_best: 'string',
    failure: 'string'
  },
  ChartData: {
    points: '[PointData]',
    unit: 'string',
    ceiling: 'number?',
    ceiling_text: 'string',
    varied: '[string]',
    leader: 'number?',
    decided: 'boolean',
    method: '[string]',
    target: 'string',
    roof_flops: 'number?',
    roof_bytes: 'number?',
    alike: 'boolean',
    swept: '[string]',
    refused: '[RefusedData]',
    others: '[OtherData]'
  },
  SweepData: {
    state: 'string',
    text: 'string',
    tone: 'string',
    part: 'number?',
    button: 'string',
    title: 'string'
  },
  CountWay: {
    name: 'string',
    title: 'string'
  },
  GutterCellData: {
    text: 'string',
    shade: 'number',
    says: 'string'
  },
  GutterData: {
    name: 'string',
    title: 'string',
    total: 'string',
    says: 'string',
    choice: 'boolean',
    cells: '[GutterCellData]',
    stages: '{[number]}',
    narrow: 'number'
  },
  ProblemData: {
    what: 'string',
    text: 'string',
    stage: 'string',
    line: 'number',
    column: 'number',
    end: 'number'
  },
  KeptEditData: {
    number: 'number',
    label: 'string',
    position: 'string',
    here: 'boolean'
  },
  EditsData: {
    editable: '[string]',
    edited: '[string]',
    kept: '[KeptEditData]'
  },
  ComparedData: {
    kind: 'string',
    name: 'string',
    said: 'string'
  },
  BenchState: {
    id: 'string',
    kernel: 'string',
    live: 'boolean',
    status: 'StatusData',
    target: 'string',
    stages: '[string]',
    shown: '[string]',
    asked: 'boolean',
    stale: 'string',
    targets: '[string]',
    run: 'boolean',
    check: 'boolean',
    controls: '[ControlData]',
    heard: '{number}',
    idle: 'string',
    titles: '{string}',
    chips: '[Chip]',
    notes: '[string]',
    problem: 'ProblemData?',
    tabs: '[TabData]',
    chart: 'ChartData?',
    edits: 'EditsData',
    position: 'string',
    notice: 'string',
    pins: '[string]',
    compared: 'ComparedData?',
    here: 'number?',
    now: '{string}',
    moved: 'string',
    sweep: 'SweepData?',
    countable: '[CountWay]'
  }
};
