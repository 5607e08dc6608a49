import type { Input } from './calls';

const memory = new Map<string, readonly Input[]>(); // used if the browser permits no storage

/**
 * Returns the inputs that are being added again, after applying `change` to the list. Adding an input again deletes the old one first, so
 * the list stores its data before. If the page is closed in between, it continues when it is opened again.
 */
export function retryQueue(app: string, change?: (all: readonly Input[]) => readonly Input[]): readonly Input[] {
  const name = `again.${app}`;
  const all = read(name);
  const next = change?.(all) ?? all;
  memory.set(name, next);
  try {
    if (next.length) localStorage.setItem(name, JSON.stringify(next));
    else localStorage.removeItem(name);
  } catch {
    // Without storage, the list lasts until the page is closed.
  }
  return next;
}

function read(name: string): readonly Input[] {
  try {
    return JSON.parse(localStorage.getItem(name) ?? '[]');
  } catch {
    return memory.get(name) ?? [];
  }
}
