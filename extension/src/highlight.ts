/** Colours for the texts of stages, from the token table that the Pygments lexers are made of. */

import tokens from './tokens.json';

type Rule = readonly [string, string];
interface Language {
  readonly pattern: RegExp;
  readonly kinds: readonly string[];
}

/** For CUDA, PTX, LLVM and assembly: enough to tell comments, numbers and registers apart. */
const PLAIN: readonly Rule[] = [
  ['\\s+', 'space'],
  ['//.*|;.*|/\\*.*?\\*/', 'comment'],
  ['"(?:\\\\.|[^"\\\\])*"?', 'string'],
  ['[%$][\\w.]+', 'register'],
  ['[-+]?(?:0[xX][0-9a-fA-F]+|\\d[\\w.]*)', 'number'],
  ['(?:if|else|for|while|return|const|void|define|ret|br|phi|load|store|asm|volatile)\\b', 'keyword'],
  ['(?:unsigned|int|float|half|double|char|bool|long|i1|i8|i16|i32|i64|ptr)\\b', 'type'],
  ['#\\w+|__\\w+__|\\.[a-z]\\w*', 'directive'],
  ['\\w+', 'name'],
  ['.', 'text']
];

function build(rules: readonly Rule[], words: Readonly<Record<string, readonly string[]>>): Language {
  const parts = rules.map(([pattern]) => {
    let filled = pattern;
    for (const [name, list] of Object.entries(words)) {
      const longestFirst = [...list].sort((a, b) => b.length - a.length);
      filled = filled.split(`{${name}}`).join(longestFirst.join('|'));
    }
    return `(${filled})`;
  });
  if (new RegExp(`${parts.join('|')}|`).exec('')!.length !== rules.length + 1) {
    throw new Error('a rule of a language has a group of its own');
  }
  return { pattern: new RegExp(parts.join('|'), 'y'), kinds: rules.map(([, kind]) => kind) };
}

const built = new Map<string, Language>();

function language(name: string): Language {
  let found = built.get(name);
  if (found === undefined) {
    const key = name === 'python' ? 'tile-ir' : name;
    const table = key === 'tile-ir' || key === 'nvsass' ? tokens[key] : undefined;
    // TypeScript reads the pairs of the JSON file as lists of strings.
    found = table
      ? build(table.rules as unknown as readonly Rule[], table.words)
      : build(
          key === 'cuda' || key === 'cpp' ? PLAIN.map(([p, k]) => [p.replace('|;.*', ''), k] as const) : PLAIN,
          {}
        );
    built.set(name, found);
  }
  return found;
}

type Pieces = readonly (readonly [text: string, kind: string])[];

function cut(line: string, name: string): Pieces {
  const { pattern, kinds } = language(name);
  const out: [string, string][] = [];
  pattern.lastIndex = 0;
  while (pattern.lastIndex < line.length) {
    const start = pattern.lastIndex;
    const match = pattern.exec(line);
    if (match === null || match[0] === '') {
      out.push([line.slice(start), 'text']);
      break;
    }
    // The rules' own groups are numbered in their order; a rule has no other group.
    let rule = 1;
    while (rule < match.length && match[rule] === undefined) {
      rule += 1;
    }
    out.push([match[0], kinds[rule - 1] ?? 'text']);
  }
  return out;
}

// A slider's next position shares most of its lines with the one before, and a pane is drawn several times.
const KEPT_LINES = 20_000;
const kept = new Map<string, Pieces>();

/** The pieces of one line with the kind of each. */
export function pieces(line: string, name: string): Pieces {
  const key = `${name}\n${line}`;
  let found = kept.get(key);
  if (found === undefined) {
    found = cut(line, name);
    if (kept.size >= KEPT_LINES) {
      kept.clear();
    }
    kept.set(key, found);
  }
  return found;
}
