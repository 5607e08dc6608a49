// Values of concepts over the time of a video.
import type { Concept } from './calls';

/** The concepts at one time of a video. */
export interface Frame {
  readonly time: number; // ms after the first shown frame
  readonly concepts: readonly Concept[]; // the likeliest first
}

/** The ids of the concepts with the largest values over all frames together, at most so many. */
export function strongest(frames: readonly Frame[], most: number): string[] {
  const sums = new Map<string, number>();
  for (const { concepts } of frames) for (const { id, value } of concepts) sums.set(id, (sums.get(id) ?? 0) + value);
  return [...sums]
    .sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
    .slice(0, most)
    .map(([id]) => id);
}

/** Gives each id a place: those that had one keep it, so that a curve keeps its colour while others come. */
export function places(before: readonly string[], ids: readonly string[]): string[] {
  const added = ids.filter((id) => !before.includes(id));
  return ids.map((_, i) => {
    const held = before[i];
    return held !== undefined && ids.includes(held) ? held : (added.shift() as string);
  });
}

/** A concept's value in each frame. The model names only the likeliest; any other counts as 0. */
export function valuesOf(frames: readonly Frame[], id: string): number[] {
  return frames.map(({ concepts }) => concepts.find((c) => c.id === id)?.value ?? 0);
}

/** Where values are at a limit or above it, as the first and the last index of each run. */
export function runs(values: readonly number[], least: number): [number, number][] {
  const found: [number, number][] = [];
  for (const [i, value] of values.entries()) {
    if (value < least) continue;
    const last = found.at(-1);
    if (last?.[1] === i - 1) last[1] = i;
    else found.push([i, i]);
  }
  return found;
}

/** The path of values in a square of 1, of so many frames in all; 1 is at the top. The last value lasts for its frame. */
export function pathOf(values: readonly number[], all: number): string {
  const at = (n: number) => Number(n.toFixed(4));
  const points = values.map((value, i) => `${at(i / all)} ${at(1 - value)}`);
  const last = values.at(-1);
  if (last !== undefined) points.push(`${at(values.length / all)} ${at(1 - last)}`);
  return points.length ? `M${points.join('L')}` : '';
}

/** Selects the frames for a strip that has room for so many: the middle one of each equal part. */
export function spread(all: number, room: number): number[] {
  const n = Math.max(1, Math.min(all, room));
  return Array.from({ length: all && n }, (_, i) => Math.floor(((i + 0.5) * all) / n));
}
