// Short words about what has just happened, at the foot of the page.

interface Toast {
  readonly id: number;
  readonly text: string;
}

let shown = $state.raw<readonly Toast[]>([]);
let next = 0;

/** The toasts that are to be seen. */
export function toasts(): readonly Toast[] {
  return shown;
}

/** Says something for eight seconds. */
export function say(text: string): void {
  const toast = { id: next++, text };
  shown = [...shown.slice(-2), toast];
  setTimeout(() => {
    shown = shown.filter((t) => t.id !== toast.id);
  }, 8000);
}
