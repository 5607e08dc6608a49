import type { Point } from '../../clauses/clause';

/** Pictures at a place, or near to one another: one pin or one cluster. */
export interface Place extends Point {
  readonly count: number;
  readonly input_id?: string; // of the picture, where it is one
}
