// Which applications have a copy on this device, as this browser remembers it: names, for when nobody can be asked.
import { keep, kept } from '../../kept';

export interface Kept {
  readonly id: string;
  readonly name: string;
  readonly language: string;
  readonly offline?: boolean; // the person wants no contact
}

/** The copies on this device. */
export function copies(): readonly Kept[] {
  try {
    const all = JSON.parse(kept('copies') ?? '[]');
    return Array.isArray(all) ? all.filter((one) => typeof one?.id === 'string' && typeof one.name === 'string') : [];
  } catch {
    return [];
  }
}

/** Remembers a copy, in place of what was remembered of it. */
export function remember(copy: Kept): void {
  keep('copies', JSON.stringify([...copies().filter((one) => one.id !== copy.id), copy]));
}

/** Forgets a copy. */
export function forget(id: string): void {
  const left = copies().filter((one) => one.id !== id);
  keep('copies', left.length ? JSON.stringify(left) : undefined);
}
