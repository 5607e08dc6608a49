// Adds the accessibility that Swagger UI lacks: names of fields, scrolling of code by keyboard, and the focus while its dialog is open.
// Swagger UI draws parts as a person navigates, so this observes the document.

/** The attributes to set, by selector. */
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

const stops = 'a[href], button:not(:disabled), input:not(:disabled), select, textarea, [tabindex="0"]';

/** Fixes the present and future content of an element, until the returned function is called. */
export function fixAccessibility(place: Element): () => void {
  let opener: HTMLElement | undefined; // the element that had the focus before the dialog
  let sent: Element | undefined; // the operation whose Execute button had the focus last
  let open = false;

  const dialog = () => place.querySelector<HTMLElement>('.modal-ux');
  const stopsOf = (dialog: HTMLElement) =>
    [...dialog.querySelectorAll<HTMLElement>(stops)].filter((e) => e.checkVisibility());
  const focusFirst = (dialog: HTMLElement) => (dialog.querySelector('input') ?? stopsOf(dialog)[0])?.focus();

  const all = () => {
    for (const [selector, name, value] of missing) {
      for (const e of place.querySelectorAll(selector)) if (e.getAttribute(name) !== value) e.setAttribute(name, value);
    }
    for (const e of place.querySelectorAll<HTMLInputElement>('.auth-container input:not([aria-label])')) {
      const name = e.labels?.length ? '' : e.closest('.wrapper')?.querySelector('label, h4')?.textContent;
      if (name) e.setAttribute('aria-label', name);
    }
    const openDialog = dialog();
    if (openDialog && !open) focusFirst(openDialog);
    if (!openDialog && open && opener?.isConnected) opener.focus();
    open = openDialog !== null;
    // A press redraws Execute next to a second button, and the focus is lost.
    if (document.activeElement === document.body && sent?.isConnected)
      sent.querySelector<HTMLElement>('.execute')?.focus({ preventScroll: true });
  };
  const onFocus = ({ target }: Event) => {
    if (!(target instanceof HTMLElement)) return;
    const openDialog = dialog();
    if (openDialog) {
      if (!openDialog.contains(target)) focusFirst(openDialog);
      return;
    }
    opener = target;
    sent = (target.matches('.execute') && target.closest('.opblock')) || undefined;
  };
  const onKey = (event: KeyboardEvent) => {
    const openDialog = dialog();
    if (event.key !== 'Tab' || !openDialog) return;
    const among = stopsOf(openDialog);
    const [from, to] = event.shiftKey ? [among[0], among.at(-1)] : [among.at(-1), among[0]];
    if (document.activeElement !== from) return;
    event.preventDefault();
    to?.focus();
  };

  const watcher = new MutationObserver(all);
  watcher.observe(place, { childList: true, subtree: true });
  document.addEventListener('focusin', onFocus);
  document.addEventListener('keydown', onKey, true);
  all();
  return () => {
    watcher.disconnect();
    document.removeEventListener('focusin', onFocus);
    document.removeEventListener('keydown', onKey, true);
  };
}
