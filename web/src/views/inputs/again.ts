import type { Input } from './calls';

const here = new Map<string, readonly Input[]>(); // for a browser that stores nothing

/**
 * The inputs that are being added again, after a change of the list. The old one must be deleted before the new one can be added, so its
 * data are stored here before: a page that is closed in between continues when it is opened again.
 */
export function retryQueue(app: string, change?: (all: readonly Input[]) => readonly Input[]): readonly Input[] {
  const name = `again.${app}`;
  const all = read(name);
  const next = change?.(all) ?? all;
  here.set(name, next);
  try {
    if (next.length) localStorage.setItem(name, JSON.stringify(next));
    else localStorage.removeItem(name);
  } catch {
    // They are remembered until the page is closed.
  }
  return next;
}

function read(name: string): readonly Input[] {
  try {
    return JSON.parse(localStorage.getItem(name) ?? '[]');
  } catch {
    return here.get(name) ?? [];
  }
}
