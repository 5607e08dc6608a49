import { onDestroy } from 'svelte';

/**
 * Whether the calling component is still mounted: check it after an await. Once unmounted, do not read its derived values, and do not
 * navigate.
 */
export function presence(): () => boolean {
  let is = true;
  onDestroy(() => {
    is = false;
  });
  return () => is;
}
