/** What a reader chose inside tabs, by key: it stays as sliders move and tabs are drawn anew. */

/** Where a grid was left: the size of its cells (-1: as they fit), and the cell that was looked at, if one was. */
export interface GridPlace {
  zoom: number;
  looked: boolean;
  row: number;
  column: number;
}

export class Kept {
  readonly chosen = new Map<string, string>();
  readonly grids = new Map<string, GridPlace>();

  grid(key: string): GridPlace {
    const found = this.grids.get(key) ?? { zoom: -1, looked: false, row: 0, column: 0 };
    this.grids.set(key, found);
    return found;
  }
}
