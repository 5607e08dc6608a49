// How long something still takes, from how it went.

/** The progress at a moment: amounts of one unit, time in milliseconds. */
export interface ProgressMark {
  readonly at: number;
  readonly done: number;
}

/** Seconds that are left, from the first mark to the last; undefined until that says something. */
export function secondsLeft(first: ProgressMark, last: ProgressMark, all: number): number | undefined {
  const [time, done] = [last.at - first.at, last.done - first.done];
  if (time < 500 || done <= 0) return undefined;
  return Math.ceil(((all - last.done) * time) / done / 1000);
}

const span = 4000; // ms that determine the current speed

/**
 * The marks that determine the current speed, with one more if there was progress since: work may become slower, and a fast start does not
 * predict the rest.
 */
export function lately(marks: readonly ProgressMark[], last: ProgressMark): readonly ProgressMark[] {
  const before = marks.at(-1);
  if (before && last.done <= before.done) return marks;
  const begin = marks.findLastIndex(({ at }) => last.at - at >= span);
  return [...marks.slice(Math.max(0, begin)), last];
}

/** How many of these moments (milliseconds) there were a second, over the last two. */
export function rate(moments: readonly number[], now: number): number {
  const recent = moments.filter((at) => now - at < 2000);
  const [first, last] = [recent[0], recent.at(-1)];
  if (first === undefined || last === undefined || last === first) return 0;
  return ((recent.length - 1) * 1000) / (last - first);
}
