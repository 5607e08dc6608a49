// The cut-off stands between two bins of the histogram, so that what it counts is what it shows.
import type { Scores } from './finder.svelte';

/** The score at an edge: 0 is the first bin's beginning. */
export function edge(s: Scores, at: number): number {
  return s.from + ((s.to - s.from) * at) / s.counts.length;
}

/** The edge that is nearest to a score. */
export function nearest(s: Scores, score: number): number {
  const at = Math.round(((score - s.from) / (s.to - s.from)) * s.counts.length);
  return Math.max(0, Math.min(s.counts.length, at));
}

/** The bin that a score is counted in. */
export function binOf(s: Scores, score: number): number {
  const at = Math.floor((score - s.from) * (s.counts.length / (s.to - s.from)));
  return Math.max(0, Math.min(s.counts.length - 1, at));
}

/** How many scores are at an edge or above. */
export function above(s: Scores, at: number): number {
  return s.counts.slice(at).reduce((sum, n) => sum + n, 0);
}

/** The score to ask for so that all hits above an edge come: not rounded up. */
export function leastAt(s: Scores, at: number): number {
  return Math.max(0, Math.floor(edge(s, at) * 1e4) / 1e4);
}
