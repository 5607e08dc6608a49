// Versions are called by their place in the order of versions: v1, v2.
import { trained, underway, type Version } from './calls';

/** A version beside its number, which is its place in the order of versions. */
export interface Numbered extends Version {
  readonly number: number;
}

/** Versions beside their numbers. One that failed has the number that the next one gets. */
export function numbered(versions: readonly Version[]): Numbered[] {
  let n = 0;
  return versions
    .toReversed()
    .map((v) => ({ ...v, number: trained(v) || underway(v) ? ++n : n + 1 }))
    .toReversed();
}
