// Written by generate_record.py from tilebench/record.py; change it there.

/** The version of the record format that these shapes belong to. */
export const FORMAT = 1;

/** The MIME type of an output that carries one record. */
export const MIME_TYPE = 'application/vnd.tilebench.record.v1+json';

/**
 * A place in the user's source: file, line from 1, column from 0, exclusive ends.
 */
export interface PlaceRecord {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly end_line: number;
  readonly end_column: number;
}

/**
 * One stage. `language` names a Pygments lexer (`python`, `tile-ir`, `cuda`, `ptx`, `nvsass`).
 *
 * `lines[k]` are the lines of the user's source that line k+1 of the text came from: where macros are
 * inlined the kernel's own line first, then those of macros in the same file. `previous[k]` are the lines of
 * the stage before. `seconds` is what making this stage took.
 * `pending` says that the text is still being made in the background.
 * Of a text that a target emits, `made_of` names the text above that its compiler got, and `made_lines[k]`
 * are the lines of that one (none: `previous` has them). `beside[k]` is what stands beside line k+1 in the
 * machine's own words, as the control codes of SASS do.
 * `names` are those that the text defines at its head, with what each stands for, a sentence a line.
 */
export interface StageRecord {
  readonly name: string;
  readonly language: string;
  readonly text: string;
  readonly lines: readonly (readonly number[])[];
  readonly previous: readonly (readonly number[])[];
  readonly seconds: number;
  readonly pending: boolean;
  readonly made_of: string;
  readonly made_lines: readonly (readonly number[])[];
  readonly beside: readonly string[];
  readonly names: Readonly<Record<string, string>>;
}

/**
 * A figure of the lines of a stage's text: `values[k]` is that of line k+1, 0 where nothing was counted.
 *
 * `title` is how people call it, `unit` what it is in (empty for a count), `says` what was counted and how.
 * `kinds[k]`, where there are any, is what stands on line k+1, in a word.
 */
export interface LineCounter {
  readonly name: string;
  readonly title: string;
  readonly stage: string;
  readonly values: readonly number[];
  readonly unit: string;
  readonly says: string;
  readonly kinds: readonly string[];
}

/**
 * What a pass did or could not do, with numbers. `kind` is `applied`, `missed` or `note`.
 */
export interface Remark {
  readonly pass_name: string;
  readonly kind: string;
  readonly message: string;
  readonly place: PlaceRecord | null;
  readonly values: Readonly<Record<string, number | string>>;
}

/**
 * An error or warning at a place in the user's source.
 */
export interface Diagnostic {
  readonly severity: string;
  readonly message: string;
  readonly place: PlaceRecord | null;
  readonly text: string;
}

/**
 * One effective scheduling choice and where it came from.
 *
 * `origin` is `kernel`, `rule`, `call` or `default`; `why` says it in words.
 */
export interface Choice {
  readonly address: string;
  readonly name: string;
  readonly value: string;
  readonly origin: string;
  readonly why: string;
}

/**
 * What a compiled kernel takes, for one block of `threads`; bytes unless said otherwise.
 *
 * `limits` is the number of blocks a multiprocessor could hold by each resource alone. Of several launches
 * `launches` has what each takes, in order; the numbers beside it are the largest of each resource, and the
 * least of blocks.
 */
export interface Resources {
  readonly threads: number;
  readonly registers: number | null;
  readonly shared_bytes: number;
  readonly local_bytes: number | null;
  readonly spill_store_bytes: number | null;
  readonly spill_load_bytes: number | null;
  readonly barriers: number | null;
  readonly blocks_per_sm: number | null;
  readonly occupancy: number | null;
  readonly limited_by: string;
  readonly limits: Readonly<Record<string, number>>;
  readonly launches: readonly Resources[];
}

/**
 * A stage whose text a person wrote. `before` is what the compiler had made there.
 *
 * It is empty where the text did not start from a kernel's.
 */
export interface EditRecord {
  readonly stage: string;
  readonly before: string;
}

/**
 * One parameter of the compiled function, in the order it is passed.
 *
 * `strides` are in elements; empty means row-major. What is known only at a launch stands as text
 * (`"m"`, `"m * 2"`). A scalar has no shape.
 */
export interface ParamRecord {
  readonly name: string;
  readonly shape: readonly (number | string)[];
  readonly dtype: string;
  readonly written: boolean;
  readonly read: boolean;
  readonly strides: readonly (number | string)[];
}

/**
 * One compilation, whole. `parameters` are the values the kernel function was called with.
 *
 * `variant` is what this one relies on (`aligned`, `general`), and `ran` names those that calls took.
 * `grid` is that of the first launch; of several, `grids` has each. `edits` are the stages whose texts
 * are not the compiler's, in the road's order: what stands below one follows from it. `counters` are figures
 * of lines that were counted by running it, in the simulator or under a profiler.
 */
export interface CompileRecord {
  readonly kernel: string;
  readonly target: string;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly arguments: readonly ParamRecord[];
  readonly stages: readonly StageRecord[];
  readonly grid: readonly (number | string)[];
  readonly resources: Resources | null;
  readonly choices: readonly Choice[];
  readonly remarks: readonly Remark[];
  readonly diagnostics: readonly Diagnostic[];
  readonly source_file: string;
  readonly source_first_line: number;
  readonly seconds: number;
  readonly flops: number;
  readonly bytes: number;
  readonly versions: Readonly<Record<string, string>>;
  readonly variant: string;
  readonly ran: readonly string[];
  readonly grids: readonly (readonly (number | string)[])[];
  readonly edits: readonly EditRecord[];
  readonly counters: readonly LineCounter[];
}

/**
 * What a warp of a block did, by the clock of its multiprocessor, in cycles since its block began.
 *
 * `kind` is `block` (all of it; `iteration` is the multiprocessor, `since` nanoseconds after the first
 * block), `load`, `wait`, `barrier`, `compute` or `store`; `name` says it in words, `line` is the user's.
 */
export interface ClockEvent {
  readonly block: number;
  readonly warp: number;
  readonly kind: string;
  readonly name: string;
  readonly iteration: number;
  readonly start: number;
  readonly end: number;
  readonly line: number;
  readonly since: number;
}

/**
 * One measurement. `samples` are seconds a launch, each alone; `seconds` is their median.
 *
 * `error` and `bound` are the largest error against the reference and the bound at that element
 * (None when not checked), `unwritten` how many elements of outputs were never written.
 * `failure` is the message when there is no time to show.
 * `operation` is what `flops` counts: `FLOP`, or `OP` where a kernel computes with integers alone.
 * `events` are what clocks inside the kernel said of its first blocks, and `clocked_seconds` the median of
 * the same kernel with them; `event_unit` is `cycles`, or `steps` of the simulator, which are no time.
 * `edited` names the stages whose texts a person wrote; `rounds`, `budget` (seconds for all rounds) and
 * `seed` are what it was asked for; without a seed it ran on the caller's arrays.
 */
export interface RunRecord {
  readonly kernel: string;
  readonly target: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly samples: readonly number[];
  readonly method: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly flops: number;
  readonly bytes: number;
  readonly error: number | null;
  readonly bound: number | null;
  readonly failure: string;
  readonly when: string;
  readonly operation: string;
  readonly unwritten: number;
  readonly events: readonly ClockEvent[];
  readonly clocked_seconds: number | null;
  readonly event_unit: string;
  readonly edited: readonly string[];
  readonly rounds: number;
  readonly budget: number;
  readonly seed: number | null;
}

/**
 * One configuration of a sweep and what came of it; `runs` are its measurements, oldest first.
 *
 * `state` is `waiting`, `compiled`, `timed`, `illegal` (the compiler refuses it) or `failed` (it does not
 * run, or its result is wrong), `why` the reason. `code` is a hash of what was compiled, `seconds` what
 * compiling took.
 */
export interface SweepRow {
  readonly config: Readonly<Record<string, unknown>>;
  readonly state: string;
  readonly why: string;
  readonly runs: readonly RunRecord[];
  readonly code: string;
  readonly seconds: number | null;
}

/**
 * The measurements of many configurations of one kernel. `domains` has the values tried, by name.
 *
 * `repeats` is how many runs a complete row has, `checked` whether results were compared with the reference.
 * `others` are runs of other implementations on the same arrays, by the same method. `best` is the
 * compilation of the fastest row, `seconds` how long the sweep took. `limits` are measured ceilings of the
 * machine by name (`flops`, `bytes`: a second), `machine` and `how` say of what and by which method.
 */
export interface SweepRecord {
  readonly kernel: string;
  readonly target: string;
  readonly domains: Readonly<Record<string, readonly unknown[]>>;
  readonly rows: readonly SweepRow[];
  readonly repeats: number;
  readonly checked: boolean;
  readonly others: readonly RunRecord[];
  readonly best: CompileRecord | null;
  readonly seconds: number;
  readonly limits: Readonly<Record<string, number>>;
  readonly machine: string;
  readonly how: string;
}

/**
 * A compilation with runs, as a bench saves them: each run says its own configuration.
 */
export interface BenchRecord {
  readonly compilation: CompileRecord;
  readonly runs: readonly RunRecord[];
}

/** The shapes above as data, for a check of what came in. */
export const SHAPES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  PlaceRecord: {
    file: 'string',
    line: 'number',
    column: 'number',
    end_line: 'number',
    end_column: 'number'
  },
  StageRecord: {
    name: 'string',
    language: 'string',
    text: 'string',
    lines: '[[number]]',
    previous: '[[number]]',
    seconds: 'number',
    pending: 'boolean',
    made_of: 'string',
    made_lines: '[[number]]',
    beside: '[string]',
    names: '{string}'
  },
  LineCounter: {
    name: 'string',
    title: 'string',
    stage: 'string',
    values: '[number]',
    unit: 'string',
    says: 'string',
    kinds: '[string]'
  },
  Remark: {
    pass_name: 'string',
    kind: 'string',
    message: 'string',
    place: 'PlaceRecord?',
    values: '{number|string}'
  },
  Diagnostic: {
    severity: 'string',
    message: 'string',
    place: 'PlaceRecord?',
    text: 'string'
  },
  Choice: {
    address: 'string',
    name: 'string',
    value: 'string',
    origin: 'string',
    why: 'string'
  },
  Resources: {
    threads: 'number',
    registers: 'number?',
    shared_bytes: 'number',
    local_bytes: 'number?',
    spill_store_bytes: 'number?',
    spill_load_bytes: 'number?',
    barriers: 'number?',
    blocks_per_sm: 'number?',
    occupancy: 'number?',
    limited_by: 'string',
    limits: '{number}',
    launches: '[Resources]'
  },
  EditRecord: {
    stage: 'string',
    before: 'string'
  },
  ParamRecord: {
    name: 'string',
    shape: '[number | string]',
    dtype: 'string',
    written: 'boolean',
    read: 'boolean',
    strides: '[number | string]'
  },
  CompileRecord: {
    kernel: 'string',
    target: 'string',
    parameters: '{*}',
    arguments: '[ParamRecord]',
    stages: '[StageRecord]',
    grid: '[number | string]',
    resources: 'Resources?',
    choices: '[Choice]',
    remarks: '[Remark]',
    diagnostics: '[Diagnostic]',
    source_file: 'string',
    source_first_line: 'number',
    seconds: 'number',
    flops: 'number',
    bytes: 'number',
    versions: '{string}',
    variant: 'string',
    ran: '[string]',
    grids: '[[number | string]]',
    edits: '[EditRecord]',
    counters: '[LineCounter]'
  },
  ClockEvent: {
    block: 'number',
    warp: 'number',
    kind: 'string',
    name: 'string',
    iteration: 'number',
    start: 'number',
    end: 'number',
    line: 'number',
    since: 'number'
  },
  RunRecord: {
    kernel: 'string',
    target: 'string',
    config: '{*}',
    samples: '[number]',
    method: 'string',
    environment: '{string}',
    flops: 'number',
    bytes: 'number',
    error: 'number?',
    bound: 'number?',
    failure: 'string',
    when: 'string',
    operation: 'string',
    unwritten: 'number',
    events: '[ClockEvent]',
    clocked_seconds: 'number?',
    event_unit: 'string',
    edited: '[string]',
    rounds: 'number',
    budget: 'number',
    seed: 'number?'
  },
  SweepRow: {
    config: '{*}',
    state: 'string',
    why: 'string',
    runs: '[RunRecord]',
    code: 'string',
    seconds: 'number?'
  },
  SweepRecord: {
    kernel: 'string',
    target: 'string',
    domains: '{[*]}',
    rows: '[SweepRow]',
    repeats: 'number',
    checked: 'boolean',
    others: '[RunRecord]',
    best: 'CompileRecord?',
    seconds: 'number',
    limits: '{number}',
    machine: 'string',
    how: 'string'
  },
  BenchRecord: {
    compilation: 'CompileRecord',
    runs: '[RunRecord]'
  }
};
