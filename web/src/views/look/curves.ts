// The values of concepts over the time of a video.
import type { Concept } from './calls';

/** The concepts at one time of a video. */
export interface Frame {
  readonly time: number; // ms after the first frame of the video
  readonly concepts: readonly Concept[]; // the likeliest first
}

/** Returns the ids of the at most `limit` concepts with the largest sums of values over all frames. */
export function strongestConcepts(frames: readonly Frame[], limit: number): string[] {
  const sums = new Map<string, number>();
  for (const { concepts } of frames) for (const { id, value } of concepts) sums.set(id, (sums.get(id) ?? 0) + value);
  return [...sums]
    .sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
    .slice(0, limit)
    .map(([id]) => id);
}

/** Returns the ids in the order of their slots. An id keeps its slot from `before`, so that its curve keeps its colour. */
export function assignSlots(before: readonly string[], ids: readonly string[]): string[] {
  const added = ids.filter((id) => !before.includes(id));
  return ids.flatMap((_, i) => {
    const previousId = before[i];
    return previousId !== undefined && ids.includes(previousId) ? previousId : added.splice(0, 1);
  });
}

/** Returns a concept's value in each frame. The model returns only the likeliest concepts of a frame; the value of others is 0. */
export function valuesOf(frames: readonly Frame[], id: string): number[] {
  return frames.map(({ concepts }) => concepts.find((c) => c.id === id)?.value ?? 0);
}

/** Returns the ranges of values that are at least `least`, each as its first and last index. */
export function rangesAbove(values: readonly number[], least: number): [number, number][] {
  const found: [number, number][] = [];
  for (const [i, value] of values.entries()) {
    if (value < least) continue;
    const last = found.at(-1);
    if (last?.[1] === i - 1) last[1] = i;
    else found.push([i, i]);
  }
  return found;
}

/** Returns the SVG path of values in a unit square for `all` frames; 1 is at the top. The path ends where the last frame ends. */
export function pathOf(values: readonly number[], all: number): string {
  const at = (n: number) => Number(n.toFixed(4));
  const points = values.map((value, i) => `${at(i / all)} ${at(1 - value)}`);
  const last = values.at(-1);
  if (last !== undefined) points.push(`${at(values.length / all)} ${at(1 - last)}`);
  return points.length ? `M${points.join('L')}` : '';
}

/** Returns the indices of the frames for a strip with room for `maxPictures` pictures: the middle frame of each equal part, at least one. */
export function sampleIndices(all: number, maxPictures: number): number[] {
  const n = Math.max(1, Math.min(all, maxPictures));
  return Array.from({ length: all && n }, (_, i) => Math.floor(((i + 0.5) * all) / n));
}
