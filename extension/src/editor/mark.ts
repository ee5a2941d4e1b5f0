// Written by generate_record.py from tilebench/workbench/front/marks.py; change it there.

/** The MIME type of the marks in an output. */
export const MARKS_MIME = 'application/vnd.tilebench.marks.v1+json';

/**
 * One mark. `file` is what the cell is called; `line` counts from 1, columns from 0 in characters.
 *
 * `severity` is `error`, `warning` or `info`. `text` is the first line as it was, `end_line` is 0 where the
 * mark ends in it. `what` says what is so, `details` are pairs of a label and a sentence.
 */
export interface Mark {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly end_line: number;
  readonly end_column: number;
  readonly text: string;
  readonly severity: string;
  readonly what: string;
  readonly details: readonly (readonly string[])[];
}

/**
 * The marks of an output, and the live bench that it belongs to, if one does.
 */
export interface Marks {
  readonly bench: string;
  readonly marks: readonly Mark[];
}

/** The shapes above as data, for a check of what came in. */
export const SHAPES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  Mark: {
    file: 'string',
    line: 'number',
    column: 'number',
    end_line: 'number',
    end_column: 'number',
    text: 'string',
    severity: 'string',
    what: 'string',
    details: '[[string]]'
  },
  Marks: {
    bench: 'string',
    marks: '[Mark]'
  }
};
