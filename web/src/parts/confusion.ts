// The data of a confusion matrix.

/** One cell. share: its part of the row, 0 to 1. count: its number of pictures, if known. href: the page with these pictures. */
export interface Cell {
  readonly share: number;
  readonly count: number | undefined;
  readonly href: string | undefined;
}
