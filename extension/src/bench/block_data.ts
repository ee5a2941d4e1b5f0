// Written by generate_record.py from tilebench/workbench/front/block_data.py; change it there.

/**
 * One cell of a table.
 */
export interface CellData {
  readonly text: string;
  readonly tone: string;
  readonly title: string;
}

/**
 * A table; `numeric` and `mono` are numbers of columns.
 */
export interface TableData {
  readonly heads: readonly string[];
  readonly rows: readonly (readonly CellData[])[];
  readonly caption: string;
  readonly numeric: readonly number[];
  readonly mono: readonly number[];
}

/**
 * `part` of a whole: 0 to 1, more where it is `over`.
 */
export interface BarData {
  readonly name: string;
  readonly part: number;
  readonly text: string;
  readonly over: boolean;
}

/**
 * A part of a map of errors, from the element `top`, `left` on: a digit a cell of `patch` elements.
 *
 * A digit is 0 (exact) to 4 (just inside its bound), 5 outside, 6 infinite, 7 no number, 8 never written,
 * 9 not compared.
 */
export interface ErrorPartData {
  readonly title: string;
  readonly top: number;
  readonly left: number;
  readonly patch: readonly number[];
  readonly rows: readonly string[];
}

/**
 * Where a result is wrong: all of it, then parts of it element by element.
 *
 * `tile` is what one block makes, empty where that is not known. The thread that wrote an element of a tile
 * is `thread_rows[i] + thread_columns[j]`, in warps of `warp`; both are empty where nobody says.
 */
export interface ErrorMapData {
  readonly label: string;
  readonly parts: readonly ErrorPartData[];
  readonly tile: readonly number[];
  readonly thread_rows: readonly number[];
  readonly thread_columns: readonly number[];
  readonly warp: number;
}

/**
 * A statement that is timed: what it does, its name, and the user's line, 0 for none.
 */
export interface LaneSiteData {
  readonly kind: string;
  readonly name: string;
  readonly line: number;
}

/**
 * One warp: four numbers a bar, begin, length, number of the site, turn of the loop around it.
 */
export interface LaneData {
  readonly name: string;
  readonly bars: readonly number[];
}

/**
 * The warps of one block, which took `length` in all.
 */
export interface LaneBlockData {
  readonly title: string;
  readonly length: number;
  readonly lanes: readonly LaneData[];
}

/**
 * What warps did when, on one axis of `unit`; `a_microsecond` of them are one (0: they are no time).
 */
export interface LanesData {
  readonly label: string;
  readonly unit: string;
  readonly a_microsecond: number;
  readonly sites: readonly LaneSiteData[];
  readonly blocks: readonly LaneBlockData[];
}

/**
 * A tile to draw, as modes that the front end counts out.
 *
 * Of what threads hold, `thread` and `value` are (count, dimension, step), the fastest first, with dimension
 * -1 for copies; `unit` is what a thread has several of (a register, a step of a loop). Of a tile in shared
 * memory `places` has the (extent, stride) modes of each dimension in elements of `bits`, `swizzle` its
 * (bits, base, shift), drawn beside the tile without it. `banks` of `bank_bytes` are the machine's, `warp`
 * its threads.
 */
export interface TileDrawing {
  readonly name: string;
  readonly extents: readonly number[];
  readonly warp: number;
  readonly thread: readonly (readonly number[])[];
  readonly value: readonly (readonly number[])[];
  readonly places: readonly (readonly (readonly number[])[])[];
  readonly swizzle: readonly number[];
  readonly bits: number;
  readonly banks: number;
  readonly bank_bytes: number;
  readonly unit: string;
}

/**
 * An instruction of a warp: the first byte of each lane's `width` bytes, -1 where it takes no part.
 *
 * Over `banks` of `bank_bytes` in shared memory, else (0 banks) over sectors of `sector` bytes.
 */
export interface LanesDrawing {
  readonly title: string;
  readonly lanes: readonly number[];
  readonly width: number;
  readonly banks: number;
  readonly bank_bytes: number;
  readonly sector: number;
}

/**
 * A buffer in a map of memory: `bytes` from `offset` on, from statement `first` to `last`, in `parts`.
 */
export interface SpanDrawing {
  readonly name: string;
  readonly offset: number;
  readonly bytes: number;
  readonly parts: number;
  readonly first: number;
  readonly last: number;
  readonly words: string;
}

/**
 * Memory by address over statements; `lines` has the user's line of each. Sizes in bytes.
 */
export interface MapDrawing {
  readonly spans: readonly SpanDrawing[];
  readonly total: number;
  readonly limit: number;
  readonly lines: readonly number[];
}

/**
 * One picture: what there is of a tile, instructions of warps side by side, a map of memory.
 */
export interface Drawing {
  readonly tile: TileDrawing | null;
  readonly lanes: readonly LanesDrawing[];
  readonly map: MapDrawing | null;
}

/**
 * One of a choice, and what is shown of it.
 */
export interface OptionBlocks {
  readonly name: string;
  readonly blocks: readonly Block[];
}

/**
 * A list to choose from inside a tab; the reader's choice is kept by `key` as values change.
 */
export interface ChoiceBlock {
  readonly key: string;
  readonly label: string;
  readonly options: readonly OptionBlocks[];
}

/**
 * A button: what it says, and the kind of what it asks the bench for.
 */
export interface ActionData {
  readonly label: string;
  readonly kind: string;
}

/**
 * One piece of a tab: those of `text` (a sentence), `quote`, `table` and pictures that there are.
 */
export interface Block {
  readonly text: string;
  readonly tone: string;
  readonly quote: string;
  readonly table: TableData | null;
  readonly bars: readonly BarData[];
  readonly errors: ErrorMapData | null;
  readonly lanes: LanesData | null;
  readonly drawing: Drawing | null;
  readonly choice: ChoiceBlock | null;
  readonly action: ActionData | null;
}

/**
 * A tab beside the panes. `badge` is a small word at its name.
 *
 * Blocks that are long and change with the compilation alone come apart from the state of a live bench.
 */
export interface TabData {
  readonly name: string;
  readonly title: string;
  readonly blocks: readonly Block[];
  readonly badge: string;
  readonly tone: string;
}

/** The shapes above as data, for a check of what came in. */
export const SHAPES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  CellData: {
    text: 'string',
    tone: 'string',
    title: 'string'
  },
  TableData: {
    heads: '[string]',
    rows: '[[CellData]]',
    caption: 'string',
    numeric: '[number]',
    mono: '[number]'
  },
  BarData: {
    name: 'string',
    part: 'number',
    text: 'string',
    over: 'boolean'
  },
  ErrorPartData: {
    title: 'string',
    top: 'number',
    left: 'number',
    patch: '[number]',
    rows: '[string]'
  },
  ErrorMapData: {
    label: 'string',
    parts: '[ErrorPartData]',
    tile: '[number]',
    thread_rows: '[number]',
    thread_columns: '[number]',
    warp: 'number'
  },
  LaneSiteData: {
    kind: 'string',
    name: 'string',
    line: 'number'
  },
  LaneData: {
    name: 'string',
    bars: '[number]'
  },
  LaneBlockData: {
    title: 'string',
    length: 'number',
    lanes: '[LaneData]'
  },
  LanesData: {
    label: 'string',
    unit: 'string',
    a_microsecond: 'number',
    sites: '[LaneSiteData]',
    blocks: '[LaneBlockData]'
  },
  TileDrawing: {
    name: 'string',
    extents: '[number]',
    warp: 'number',
    thread: '[[number]]',
    value: '[[number]]',
    places: '[[[number]]]',
    swizzle: '[number]',
    bits: 'number',
    banks: 'number',
    bank_bytes: 'number',
    unit: 'string'
  },
  LanesDrawing: {
    title: 'string',
    lanes: '[number]',
    width: 'number',
    banks: 'number',
    bank_bytes: 'number',
    sector: 'number'
  },
  SpanDrawing: {
    name: 'string',
    offset: 'number',
    bytes: 'number',
    parts: 'number',
    first: 'number',
    last: 'number',
    words: 'string'
  },
  MapDrawing: {
    spans: '[SpanDrawing]',
    total: 'number',
    limit: 'number',
    lines: '[number]'
  },
  Drawing: {
    tile: 'TileDrawing?',
    lanes: '[LanesDrawing]',
    map: 'MapDrawing?'
  },
  OptionBlocks: {
    name: 'string',
    blocks: '[Block]'
  },
  ChoiceBlock: {
    key: 'string',
    label: 'string',
    options: '[OptionBlocks]'
  },
  ActionData: {
    label: 'string',
    kind: 'string'
  },
  Block: {
    text: 'string',
    tone: 'string',
    quote: 'string',
    table: 'TableData?',
    bars: '[BarData]',
    errors: 'ErrorMapData?',
    lanes: 'LanesData?',
    drawing: 'Drawing?',
    choice: 'ChoiceBlock?',
    action: 'ActionData?'
  },
  TabData: {
    name: 'string',
    title: 'string',
    blocks: '[Block]',
    badge: 'string',
    tone: 'string'
  }
};
