import { onDestroy } from 'svelte';

/**
 * Returns a function that reports whether the calling component is still mounted. Call it after an await: an unmounted component must not
 * read its derived values or navigate.
 */
export function trackMounted(): () => boolean {
  let isMounted = true;
  onDestroy(() => {
    isMounted = false;
  });
  return () => isMounted;
}
