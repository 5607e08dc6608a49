/** Wraps work so that it never runs twice at a time. Calls during a run cause one more run, and all callers wait for the last run. */
export function coalesce(work: () => Promise<void>): () => Promise<void> {
  let round: Promise<void> | undefined;
  let again = false;
  const run = (): Promise<void> => {
    if (round) again = true;
    round ??= work().finally(() => {
      round = undefined;
      if (!again) return;
      again = false;
      return run();
    });
    return round;
  };
  return run;
}
