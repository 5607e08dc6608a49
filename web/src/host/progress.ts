// Estimates the remaining time of work from its progress.

/** The progress at a moment. at: time in milliseconds. done: the finished amount, in the unit of the work. */
export interface ProgressMark {
  readonly at: number;
  readonly done: number;
}

/** Returns the remaining seconds, from the speed between two marks; undefined if they are too close for an estimate. */
export function secondsLeft(first: ProgressMark, last: ProgressMark, all: number): number | undefined {
  const [time, done] = [last.at - first.at, last.done - first.done];
  if (time < 500 || done <= 0) return undefined;
  return Math.ceil(((all - last.done) * time) / done / 1000);
}

const span = 4000; // ms that determine the current speed

/**
 * Adds a mark if there was progress since the last one, and drops the marks that are too old for the current speed. Work may become
 * slower, so a fast start does not predict the rest.
 */
export function lately(marks: readonly ProgressMark[], last: ProgressMark): readonly ProgressMark[] {
  const before = marks.at(-1);
  if (before && last.done <= before.done) return marks;
  const begin = marks.findLastIndex(({ at }) => last.at - at >= span);
  return [...marks.slice(Math.max(0, begin)), last];
}

/** Returns the number of moments per second, over the last two seconds. Moments and now are in milliseconds. */
export function rate(moments: readonly number[], now: number): number {
  const recent = moments.filter((at) => now - at < 2000);
  const [first, last] = [recent[0], recent.at(-1)];
  if (first === undefined || last === undefined || last === first) return 0;
  return ((recent.length - 1) * 1000) / (last - first);
}
