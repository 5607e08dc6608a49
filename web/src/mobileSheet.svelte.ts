// The state of the sheet that replaces the side bar on narrow pages.
let shown = $state(false);
let there = $state(false);

/** Reports whether the sheet is open. */
export function sheetOpen(): boolean {
  return shown;
}

/** Opens or closes the sheet. */
export function openSheet(open = true): void {
  shown = open;
}

/** Reports whether the page has a sheet. Pages before signing in have none. */
export function hasSheet(): boolean {
  return there;
}

/** Registers the sheet while the calling component is mounted. */
export function registerSheet(): void {
  $effect(() => {
    there = true;
    return () => {
      there = shown = false;
    };
  });
}
