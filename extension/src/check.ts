/** A check of what came in: an output may be of another version, cut short, or from a stranger. */

import { Envelope, FORMAT, SHAPES } from './record';

/** The first thing in `value` that does not have `shape`, in words, or null when all is well. */
export function mismatch(value: unknown, shape: string, path: string): string | null {
  if (shape === '*') {
    return null;
  }
  if (shape.endsWith('?')) {
    return value === null ? null : mismatch(value, shape.slice(0, -1), path);
  }
  if (shape.startsWith('[')) {
    return Array.isArray(value)
      ? first(value.map((each, at) => [each, `${path}[${at}]`]), shape.slice(1, -1))
      : `${path} is no list`;
  }
  if (shape.startsWith('{')) {
    return isObject(value)
      ? first(Object.entries(value).map(([key, each]) => [each, `${path}.${key}`]), shape.slice(1, -1))
      : `${path} is no table`;
  }
  const fields = SHAPES[shape];
  if (fields === undefined) {
    return shape.split('|').includes(typeof value) ? null : `${path} is no ${shape}`;
  }
  if (!isObject(value)) {
    return `${path} is no ${shape}`;
  }
  for (const [name, inner] of Object.entries(fields)) {
    const found = mismatch(value[name], inner, `${path}.${name}`);
    if (found !== null) {
      return found;
    }
  }
  return null;
}

function first(values: [unknown, string][], shape: string): string | null {
  for (const [value, path] of values) {
    const found = mismatch(value, shape, path);
    if (found !== null) {
      return found;
    }
  }
  return null;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `data` as an envelope; throws an `Error` that says what does not fit. */
export function readEnvelope(data: unknown): Envelope {
  if (!isObject(data)) {
    throw new Error('This output holds no tilebench record.');
  }
  if (data['format'] !== FORMAT) {
    throw new Error(
      `This record has format ${String(data['format'])}; this viewer reads format ${FORMAT}. ` +
        'Install the same version of tilebench in the server and in the kernel.'
    );
  }
  const name = { compile: 'CompileRecord', run: 'RunRecord' }[String(data['kind'])];
  if (name === undefined) {
    throw new Error(`This record is of the kind ${String(data['kind'])}; known are compile and run.`);
  }
  const found = mismatch(data['record'], name, 'record');
  if (found !== null) {
    throw new Error(`This record cannot be shown: ${found}.`);
  }
  return data as unknown as Envelope;
}
