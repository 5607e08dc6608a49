// Computes the positions of the rows of a long grid. The grid has runs of cells, for example one run per day, and each run may have a
// heading. The computation needs only the sizes of the runs, so its cost depends on the number of runs and not of cells.

/** Sizes of a grid, in pixels. */
export interface Metrics {
  readonly columns: number; // at least 1
  readonly row: number; // height of a row of cells, with the gap below it
  readonly head: number; // height of a heading; 0: no headings
  readonly foot: number; // space below a run
}

/** A row of the grid: a heading, or cells. */
export interface Row {
  readonly index: number; // index among all rows and headings
  readonly run: number;
  readonly head: boolean;
  readonly first: number; // index of its first cell; for a heading, of the run's first cell
  readonly count: number; // number of its cells; for a heading, of the run's cells
  readonly top: number;
}

interface Run {
  readonly first: number; // index of its first cell
  readonly count: number;
  readonly row: number;
  readonly top: number;
}

export class Layout {
  readonly height: number;
  readonly rows: number;
  readonly cells: number;
  readonly #runs: readonly Run[];
  readonly #m: Metrics;

  /** counts: number of cells in each run. */
  constructor(counts: readonly number[], metrics: Metrics) {
    this.#m = metrics;
    const runs: Run[] = [];
    let [first, row, top] = [0, 0, 0];
    for (const count of counts) {
      runs.push({ first, count, row, top });
      const lines = Math.ceil(count / metrics.columns);
      first += count;
      row += lines + (metrics.head ? 1 : 0);
      top += metrics.head + lines * metrics.row + metrics.foot;
    }
    this.#runs = runs;
    [this.cells, this.rows, this.height] = [first, row, top];
  }

  /** Returns the rows that are at least partly between two heights, in px from the top of the grid. */
  between(from: number, to: number): Row[] {
    const found: Row[] = [];
    for (let n = this.#last((run) => run.top <= from); n < this.#runs.length; n++) {
      const run = this.#run(n);
      if (run.top >= to) break;
      if (this.#m.head && run.top + this.#m.head > from) found.push(this.#head(n));
      const top = run.top + this.#m.head;
      const lines = Math.ceil(run.count / this.#m.columns);
      const begin = Math.max(0, Math.floor((from - top) / this.#m.row));
      const end = Math.min(lines, Math.ceil((to - top) / this.#m.row));
      for (let line = begin; line < end; line++) found.push(this.#line(n, line));
    }
    return found;
  }

  /** Returns the row of a cell. */
  rowOf(cell: number): Row {
    const n = this.#last((run) => run.first <= cell);
    const run = this.#run(n);
    return this.#line(n, Math.floor((cell - run.first) / this.#m.columns));
  }

  /** Returns the index of the run at a height. */
  runAt(height: number): number {
    return this.#last((run) => run.top <= height);
  }

  /** Returns the height at which a run begins. */
  topOf(run: number): number {
    return this.#runs[run]?.top ?? 0;
  }

  /** Returns the cell `rows` rows further down in the same column, or the nearest cell to it. A negative number goes up. */
  move(cell: number, rows: number): number {
    const row = this.rowOf(cell);
    const column = cell - row.first;
    let n = row.run;
    let line = (row.first - this.#run(n).first) / this.#m.columns + rows;
    for (;;) {
      const run = this.#run(n);
      const lines = Math.ceil(run.count / this.#m.columns);
      if (line >= lines && n + 1 < this.#runs.length) {
        line -= lines;
        n++;
      } else if (line < 0 && n > 0) {
        n--;
        line += Math.ceil(this.#run(n).count / this.#m.columns);
      } else {
        line = Math.min(Math.max(line, 0), Math.max(0, lines - 1));
        const target = this.#line(n, line);
        return target.first + Math.min(column, target.count - 1);
      }
    }
  }

  #run(n: number): Run {
    return this.#runs[n] ?? { first: 0, count: 0, row: 0, top: 0 };
  }

  #head(n: number): Row {
    const run = this.#run(n);
    return { index: run.row, run: n, head: true, first: run.first, count: run.count, top: run.top };
  }

  #line(n: number, line: number): Row {
    const run = this.#run(n);
    const first = run.first + line * this.#m.columns;
    return {
      index: run.row + line + (this.#m.head ? 1 : 0),
      run: n,
      head: false,
      first,
      count: Math.min(this.#m.columns, run.first + run.count - first),
      top: run.top + this.#m.head + line * this.#m.row,
    };
  }

  /** Returns the index of the last run for which predicate is true, or 0 if there is none. predicate must be true for all runs before that one. */
  #last(predicate: (run: Run) => boolean): number {
    let [low, high] = [0, this.#runs.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (predicate(this.#run(middle))) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/** An element for a row. Another row reuses it when the first one has left the window. */
export interface Slot {
  readonly key: number;
  readonly row: Row;
}

/** Reports whether a slot already shows a row, so that it need not be drawn again. */
const shows = ({ row }: Slot, next: Row): boolean =>
  row.index === next.index &&
  row.head === next.head &&
  row.first === next.first &&
  row.count === next.count &&
  row.run === next.run &&
  row.top === next.top;

/** Assigns slots to rows. Rows that stay keep their slots, and the others reuse free slots of their kind. fresh: returns a new key. */
export function recycle(slots: readonly Slot[], rows: readonly Row[], fresh: () => number): Slot[] {
  const slotByIndex = new Map(slots.map((slot) => [slot.row.index, slot]));
  const rowByIndex = new Map(rows.map((row) => [row.index, row]));
  const free = slots.filter((slot) => rowByIndex.get(slot.row.index)?.head !== slot.row.head);
  return rows.map((row) => {
    const slot = slotByIndex.get(row.index);
    if (slot && shows(slot, row)) return slot;
    if (slot && slot.row.head === row.head) return { key: slot.key, row };
    const at = free.findIndex((slot) => slot.row.head === row.head);
    const [freeSlot] = at < 0 ? [] : free.splice(at, 1);
    return { key: freeSlot?.key ?? fresh(), row };
  });
}
