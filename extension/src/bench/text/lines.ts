/** A stage's text as lines, and which languages are the tile language. */

const TILE = new Set(['python', 'tile-ir']);

/** The lines of a text; the last ends with a line break or not. */
export function linesOf(text: string): string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}

/** Whether a stage is in words of the tile language: the source, and what passes print. */
export function isTile(language: string): boolean {
  return TILE.has(language);
}
