// What Swagger UI leaves out for those who do not see the page, or have no mouse: names of fields, and a way
// to scroll code by keyboard. It draws as a person goes, and so this watches.

/** What to set, by selector. */
const missing: readonly (readonly [selector: string, name: string, value: string])[] = [
  ['#servers', 'aria-label', 'Servers'],
  ['.examples-select-element', 'aria-label', 'Examples'],
  ['.operation-filter-input', 'aria-label', 'Filter by tag or path'],
  ['textarea.body-param__text', 'aria-label', 'Request body'],
  ['button.close-modal', 'aria-label', 'Close'],
  ['button[aria-label="Apply credentials"]', 'aria-label', 'Authorize'],
  ['button[aria-label="Remove authorization"]', 'aria-label', 'Logout'],
  ['pre', 'tabindex', '0'],
  ['.modal-ux', 'role', 'dialog'],
  ['.modal-ux', 'aria-modal', 'true'],
  ['.modal-ux', 'aria-label', 'Authorize'],
];

/** Mends what is in an element now and what comes, until what it returns is called. */
export function mend(place: Element): () => void {
  const all = () => {
    for (const [selector, name, value] of missing) {
      for (const e of place.querySelectorAll(selector)) if (e.getAttribute(name) !== value) e.setAttribute(name, value);
    }
  };
  const watcher = new MutationObserver(all);
  watcher.observe(place, { childList: true, subtree: true });
  all();
  return () => watcher.disconnect();
}
