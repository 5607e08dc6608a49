import type { Point } from '../../clauses/clause';

/** Pictures at one place or close together: one pin or one cluster. */
export interface Place extends Point {
  readonly count: number;
  readonly input_id?: string; // id of the input if count is 1
}
