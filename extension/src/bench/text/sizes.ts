/** Which numbers of a changed line only follow from sizes: the same rules as `workbench/sizes.py`. */

type Parameters = Readonly<Record<string, unknown>>;

const INTEGER = /^(?:0[xX][0-9a-fA-F]+|\d+)$/;
/** A number in one of these, or given to one with `=`, is a decision, whatever moved it. */
const DECISIONS = new Set([
  'bytes', 'vector', 'swizzle', 'plan', 'pending', 'num_stages', 'at_stage', 'order', 'policy', 'by',
  'T.Swizzle', 'T.Plan', 'T.Stage', 'T.Instr', 'T.float16', 'T.bfloat16', 'T.float32', 'T.float64'
]);
/** Sums of sizes, which grow by no ratio. */
const SUMS = new Set(['shared_bytes', 'offset']);
/** A parameter that is a decision itself: what follows from it is no size. */
const NO_SIZES = new Set(['num_stages']);
const MOST_MOVED = 4;

/** The parameters behind two texts: of the old one and of the new one. */
export class Sizes {
  private readonly ratios: readonly (readonly [number, number])[];

  constructor(before: Parameters, private readonly after: Parameters) {
    this.ratios = ratiosOf(before, after);
  }

  /** Whether a word of a line (`words`, without blanks) follows as `old` did, from sizes. */
  explain(old: string, words: readonly string[], at: number): boolean {
    const now = words[at]!;
    if (INTEGER.test(old) && INTEGER.test(now)) {
      const around = namesAround(words, at);
      if (this.ratios.length === 0 || [...around].some(name => DECISIONS.has(name))) {
        return false;
      }
      const [a, b] = [Number(old), Number(now)];
      // A mask is one less than a size.
      const grown = this.ratios.some(([up, down]) => b * down === a * up || (b + 1) * down === (a + 1) * up);
      return grown || [...around].some(name => SUMS.has(name));
    }
    const value = Object.hasOwn(this.after, old) ? this.after[old] : undefined;
    return (typeof value === 'number' || typeof value === 'string') && (now === String(value) || now === `T.${value}`);
  }
}

/** Products of powers of what moved parameters grew by, as fractions. */
function ratiosOf(before: Parameters, after: Parameters): [number, number][] {
  const moved: [number, number][] = [];
  for (const [name, now] of Object.entries(after)) {
    const old = Object.hasOwn(before, name) ? before[name] : undefined;
    if (!NO_SIZES.has(name) && isSize(now) && isSize(old) && now !== old) {
      moved.push([now, old]);
    }
  }
  let found: [number, number][] = [[1, 1]];
  for (const [now, old] of moved.slice(0, MOST_MOVED)) {
    found = found.flatMap(([up, down]) =>
      [-2, -1, 0, 1, 2].map((power): [number, number] =>
        power < 0 ? [up * old ** -power, down * now ** -power] : [up * now ** power, down * old ** power]
      )
    );
  }
  return found.filter(([up, down]) => up !== down);
}

function isSize(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0;
}

/** The names in front of brackets around a word, and those that it, or a call around it, is given to. */
function namesAround(words: readonly string[], at: number): Set<string> {
  const found = new Set<string>();
  let [depth, behindComma] = [0, false];
  for (let k = at - 1; k >= 0; k -= 1) {
    const [word, name] = [words[k]!, words[k - 1] ?? ''];
    if (word === ')' || word === ']') {
      depth += 1;
    } else if (word === '(' || word === '[') {
      if (depth > 0) {
        depth -= 1;
      } else {
        found.add(name);
        behindComma = false;
      }
    } else if (depth === 0 && word === ',') {
      behindComma = true;
    } else if (depth === 0 && word === '=' && !behindComma) {
      found.add(name);
    }
  }
  return found;
}
