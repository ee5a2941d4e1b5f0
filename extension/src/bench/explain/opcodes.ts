/** What an opcode does, and what its parts say: sentences of `tilebench/workbench/opcodes.json`. */

type Sentences = Readonly<Record<string, string>>;

/** The sentences, as `packed.ts` holds them. */
export interface Tables {
  readonly sass: Sentences;
  readonly sass_modifiers: Sentences;
  readonly ptx: Sentences;
  readonly ptx_modifiers: Sentences;
  readonly special: Sentences;
  /** Of each word of the language its signature and its line. */
  readonly words: Readonly<Record<string, readonly [string, string]>>;
}

/** The opcode of a line: behind its address and predicate, in front of its operands. */
const PLACES: Readonly<Record<string, RegExp>> = {
  nvsass: /^(?:\s|\/\*.*?\*\/)*(?:@!?U?P[T\d]+\s+)?([A-Z][A-Z0-9_]*)((?:\.\w+)*)/,
  ptx: /^\s*(?:\{\s*)?(?:@!?%\w+\s+)?([a-z][a-z0-9_]*)((?:(?:\.|::)\w+)*)(?=[\s;])/
};

function look(sentences: Sentences, name: string): string {
  return Object.hasOwn(sentences, name) ? sentences[name]! : '';
}

/** The opcode of a line with its modifiers, and where it stands; null for a line without one. */
function opcodeOf(line: string, language: string): { base: string; modifiers: string[]; from: number; to: number } | null {
  const match = PLACES[language]?.exec(line) ?? null;
  if (match === null) {
    return null;
  }
  const [whole, base, rest] = [match[0], match[1] ?? '', match[2] ?? ''];
  const modifiers = rest.split(/\.(?=\w)/).filter(Boolean);
  return { base, modifiers, from: whole.length - base.length - rest.length, to: whole.length };
}

/** What is to be said of the piece of a line that begins at a letter; empty for nothing. */
export function explainAssembly(tables: Tables, line: string, language: string, text: string, start: number): string {
  const [opcodes, modifiers] = language === 'ptx' ? [tables.ptx, tables.ptx_modifiers] : [tables.sass, tables.sass_modifiers];
  const special = /^(?:SR_\w+|SRZ|%[a-z_0-9]+)/.exec(text)?.[0] ?? '';
  if (special !== '') {
    const says = look(tables.special, special);
    return says && `${text}: ${says}`;
  }
  const found = opcodeOf(line, language);
  if (found === null || start < found.from || start >= found.to) {
    // Of operands: that a register is kept for the next instruction.
    return language === 'nvsass' && text === '.reuse' ? `reuse: ${look(modifiers, 'reuse')}` : '';
  }
  const says = look(opcodes, found.base);
  const told = found.modifiers.map(name => [name, look(modifiers, name)]).filter(([, what]) => what !== '');
  return says === '' ? '' : [`${found.base}: ${says}`, ...told.map(([name, what]) => `.${name}: ${what}`)].join('\n');
}

/** A word of the language in two lines; empty for a name that is none. */
export function explainWord(tables: Tables, name: string): string {
  const row = Object.hasOwn(tables.words, name) ? tables.words[name] : undefined;
  return row === undefined ? '' : `T.${name}${row[0]}\n${row[1]}`;
}
