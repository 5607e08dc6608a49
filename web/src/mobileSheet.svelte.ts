// Whether the sheet is open that holds, on narrow pages, what the side bar holds on wide ones.
let shown = $state(false);
let there = $state(false);

/** Whether it is open. */
export function sheetOpen(): boolean {
  return shown;
}

/** Opens it, or closes it. */
export function openSheet(open = true): void {
  shown = open;
}

/** Whether there is one: pages before signing in have none. */
export function hasSheet(): boolean {
  return there;
}

/** Says that there is one, for as long as the component that calls this is shown. */
export function registerSheet(): void {
  $effect(() => {
    there = true;
    return () => {
      there = shown = false;
    };
  });
}
