// Converts between scores and the histogram. A cut-off lies at an edge between two bins, so that the counted scores are the displayed bins.
import type { Scores } from './finder.svelte';

/** Returns the score at an edge. Edge 0 is the lower end of the first bin. */
export function edge(s: Scores, at: number): number {
  return s.from + ((s.to - s.from) * at) / s.counts.length;
}

/** Returns the index of the edge that is nearest to a score. */
export function nearest(s: Scores, score: number): number {
  const at = Math.round(((score - s.from) / (s.to - s.from)) * s.counts.length);
  return Math.max(0, Math.min(s.counts.length, at));
}

/** Returns the index of the bin that counts a score. */
export function binOf(s: Scores, score: number): number {
  const at = Math.floor((score - s.from) * (s.counts.length / (s.to - s.from)));
  return Math.max(0, Math.min(s.counts.length - 1, at));
}

/** Returns the number of scores at an edge or above. */
export function above(s: Scores, at: number): number {
  return s.counts.slice(at).reduce((sum, n) => sum + n, 0);
}

/** Returns the minimum score of a request for all hits above an edge. It is rounded down to four decimals, so no hit is missing. */
export function leastAt(s: Scores, at: number): number {
  return Math.max(0, Math.floor(edge(s, at) * 1e4) / 1e4);
}
