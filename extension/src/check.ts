/** A check of what came in: an output may be of another version, cut short, or from a stranger. */

import { SHAPES as BLOCK_SHAPES } from './bench/block_data';
import { Apart } from './bench/data';
import { BenchState, GutterData, SHAPES as STATE_SHAPES } from './bench/state';
import { CompileRecord, FORMAT, RunRecord, SHAPES as RECORD_SHAPES } from './record';

/** What a notebook output carries, packed: a compilation, its measurements, and what stands around them. */
interface Held {
  readonly record: CompileRecord;
  readonly runs: readonly RunRecord[];
  /** Null in what a widget sends, whose state comes by itself. */
  readonly state: BenchState | null;
  /** The columns beside the lines. */
  readonly gutters: readonly GutterData[];
}

type Shapes = Readonly<Record<string, Readonly<Record<string, string>>>>;

const SHAPES: Shapes = { ...RECORD_SHAPES, ...BLOCK_SHAPES, ...STATE_SHAPES };

/** The first thing in `value` that does not have `shape`, in words, or null when all is well. */
export function mismatch(value: unknown, shape: string, path: string, shapes: Shapes = SHAPES): string | null {
  if (shape === '*') {
    return null;
  }
  if (shape.endsWith('?')) {
    return value === null ? null : mismatch(value, shape.slice(0, -1), path, shapes);
  }
  if (shape.startsWith('[')) {
    return Array.isArray(value)
      ? first(value.map((each, at) => [each, `${path}[${at}]`]), shape.slice(1, -1), shapes)
      : `${path} is no list`;
  }
  if (shape.startsWith('{')) {
    return isObject(value)
      ? first(Object.entries(value).map(([key, each]) => [each, `${path}.${key}`]), shape.slice(1, -1), shapes)
      : `${path} is no table`;
  }
  const fields = shapes[shape];
  if (fields === undefined) {
    const kinds = shape.split('|').map(kind => kind.trim());
    return kinds.includes(typeof value) ? null : `${path} is no ${shape}`;
  }
  if (!isObject(value)) {
    return `${path} is no ${shape}`;
  }
  for (const [name, inner] of Object.entries(fields)) {
    const found = mismatch(value[name], inner, `${path}.${name}`, shapes);
    if (found !== null) {
      return found;
    }
  }
  return null;
}

function first(values: [unknown, string][], shape: string, shapes: Shapes): string | null {
  for (const [value, path] of values) {
    const found = mismatch(value, shape, path, shapes);
    if (found !== null) {
      return found;
    }
  }
  return null;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What the packed text holds: base64 of zlib of JSON. */
export async function unpack(text: string): Promise<unknown> {
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Response(plain).json();
}

/** Blocks that come apart from a state; none for an empty text, an `Error` for what does not fit. */
export async function readApart(packed: string): Promise<Apart> {
  const held = packed === '' ? {} : await unpack(packed);
  const found = mismatch(held, '{[Block]}', 'apart');
  if (found !== null) {
    throw new Error(`These pictures cannot be shown: ${found}.`);
  }
  return held as Apart;
}

/** The compilation and runs in the data of an output; throws an `Error` that says what does not fit. */
export async function readOutput(data: unknown): Promise<Held> {
  if (!isObject(data)) {
    throw new Error('This output holds no tilebench record.');
  }
  if (data['format'] !== FORMAT) {
    throw new Error(
      `This record has format ${String(data['format'])}; this viewer reads format ${FORMAT}. ` +
        'Install the same version of tilebench in the server and in the kernel.'
    );
  }
  let held: unknown;
  try {
    held = await unpack(String(data['packed']));
  } catch (error) {
    throw new Error(`This record cannot be unpacked: ${String(error)}.`);
  }
  if (!isObject(held)) {
    throw new Error('This record cannot be shown: it holds no table.');
  }
  const found =
    mismatch(held['record'], 'CompileRecord', 'record') ??
    mismatch(held['runs'], '[RunRecord]', 'runs') ??
    mismatch(held['state'] ?? null, 'BenchState?', 'state') ??
    mismatch(held['gutters'] ?? [], '[GutterData]', 'gutters');
  if (found !== null) {
    throw new Error(`This record cannot be shown: ${found}.`);
  }
  return { state: null, gutters: [], ...held } as unknown as Held;
}
