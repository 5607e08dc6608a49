/** Work that runs once at a time: asked for while it runs, it runs once more, and who asked waits for that. */
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
