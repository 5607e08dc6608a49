// Short words about what has just happened, at the foot of the page; some can be taken back.

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly action?: string;
  readonly undo?: () => unknown;
  readonly more?: More;
}

/** Another button: its word, and what it does. */
interface More {
  readonly word: string;
  readonly act: () => unknown;
}

/** The button of a toast. */
interface Offer {
  readonly action?: string; // the word on its button; where there is none: "Undo"
  readonly undo: () => unknown; // what the button does; the toast goes
  readonly more?: More; // shown before it
}

let shown = $state.raw<readonly Toast[]>([]);
let next = 0;

/** The visible toasts. */
export function toasts(): readonly Toast[] {
  return shown;
}

/** Says something for eight seconds; with a button, for ten. */
export function say(text: string, offer?: Offer): void {
  const toast = { id: next++, text, ...offer };
  shown = [...shown.slice(-2), toast];
  setTimeout(() => unsay(toast.id), offer ? 10_000 : 8000);
}

/** Takes a toast away. */
export function unsay(id: number): void {
  shown = shown.filter((t) => t.id !== id);
}
