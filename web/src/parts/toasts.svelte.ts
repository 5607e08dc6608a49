// Short messages about the last action, at the foot of the page. Some have an undo button.

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly action?: string;
  readonly undo?: () => unknown;
  readonly more?: More;
}

/** The second button of a toast: its label and its action. */
interface More {
  readonly word: string;
  readonly act: () => unknown;
}

/** The button of a toast. */
interface Offer {
  readonly action?: string; // label of the button; default: "Undo"
  readonly undo: () => unknown; // action of the button, which also closes the toast
  readonly more?: More; // second button, shown before the first
}

let visibleToasts = $state.raw<readonly Toast[]>([]);
let next = 0;

/** Returns the visible toasts, oldest first. */
export function toasts(): readonly Toast[] {
  return visibleToasts;
}

/** Shows a text for eight seconds, or for ten if it has a button. At most three toasts are visible. */
export function showToast(text: string, offer?: Offer): void {
  const toast = { id: next++, text, ...offer };
  visibleToasts = [...visibleToasts.slice(-2), toast];
  setTimeout(() => closeToast(toast.id), offer ? 10_000 : 8000);
}

/** Closes a toast. */
export function closeToast(id: number): void {
  visibleToasts = visibleToasts.filter((t) => t.id !== id);
}
