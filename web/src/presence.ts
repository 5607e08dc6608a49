import { onDestroy } from 'svelte';

/**
 * Whether the component that calls this is shown, for work that outlives it: after it waited, what the component derives is not to be
 * read any more, and nobody who has gone on is to be led elsewhere.
 */
export function presence(): () => boolean {
  let is = true;
  onDestroy(() => {
    is = false;
  });
  return () => is;
}
