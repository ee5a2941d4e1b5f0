/** Where the names of a stage's text are bound: allocations, lets, loops, blocks and parameters. */

/** A line (from 0) that binds a name, and what it says of it. */
export interface Binding {
  readonly line: number;
  readonly text: string;
}

const PARAMETER = /(\w+): (T\.\w+(?:\((?:[^()]|\([^()]*\))*\))?)/g;

function namesOf(line: string): readonly string[] {
  const value = /^\s*(\w+)(?:: T\.\w+)? = /.exec(line);
  if (value !== null) {
    return [value[1]!];
  }
  const several = /^\s*for (.+?) in T\./.exec(line) ?? /^\s*with .* as \(?(.+?)\)?:$/.exec(line);
  return several === null ? [] : several[1]!.split(', ');
}

/** The bindings of each name, in the order of the text. */
export function bindings(lines: readonly string[]): ReadonlyMap<string, readonly Binding[]> {
  const out = new Map<string, Binding[]>();
  const add = (name: string, line: number, text: string): void => {
    const known = out.get(name);
    known === undefined ? out.set(name, [{ line, text }]) : known.push({ line, text });
  };
  lines.forEach((line, at) => {
    if (line.startsWith('def ')) {
      [...line.matchAll(PARAMETER)].forEach(found => add(found[1]!, at, found[0]));
    } else {
      namesOf(line).forEach(name => add(name, at, line.trim()));
    }
  });
  return out;
}

/** The binding of a name that holds at a line: the last one above it. */
export function boundAt(found: ReadonlyMap<string, readonly Binding[]>, name: string, line: number): Binding | null {
  let last: Binding | null = null;
  for (const binding of found.get(name) ?? []) {
    if (binding.line >= line) {
      break;
    }
    last = binding;
  }
  return last;
}
