// The state of the sheet that replaces the side bar on narrow pages.
let isOpen = $state(false);
let isRegistered = $state(false);

/** Reports whether the sheet is open. */
export function sheetOpen(): boolean {
  return isOpen;
}

/** Opens or closes the sheet. */
export function openSheet(open = true): void {
  isOpen = open;
}

/** Reports whether the page has a sheet. Pages before signing in have none. */
export function hasSheet(): boolean {
  return isRegistered;
}

/** Registers the sheet while the calling component is mounted. */
export function registerSheet(): void {
  $effect(() => {
    isRegistered = true;
    return () => {
      isRegistered = isOpen = false;
    };
  });
}
