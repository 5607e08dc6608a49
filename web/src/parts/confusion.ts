// The data of a confusion matrix.

/** One cell: how much of its row it is, 0 to 1, and how many pictures, where that is known. */
export interface Cell {
  readonly share: number;
  readonly count: number | undefined;
  readonly href: string | undefined;
}
