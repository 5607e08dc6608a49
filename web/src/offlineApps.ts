// Which applications have a copy on this device, as this browser remembers it: names, for when nobody can be asked.
import { readChoice, saveChoice } from './storage';

export interface Kept {
  readonly id: string;
  readonly name: string;
  readonly language: string;
  readonly offline?: boolean; // the person wants no contact
  readonly eager?: boolean; // all pictures come at once, not when they are wanted
  readonly whole?: boolean; // all that the origin had at a moment is stored
  readonly contact?: string; // when the origin last answered it, up to a minute before
  readonly local_only?: boolean; // as Named has it
}

/** The copies on this device. */
export function copies(): readonly Kept[] {
  return listed('copies').filter((one): one is Kept => typeof one?.id === 'string' && typeof one.name === 'string');
}

/** The copy of an application. */
export function copyOf(id: string): Kept | undefined {
  return copies().find((one) => one.id === id);
}

/** Remembers a copy, and replaces its previous note. */
export function remember(copy: Kept): void {
  saveChoice('copies', JSON.stringify([...copies().filter((one) => one.id !== copy.id), copy]));
  decline(copy.id, false);
}

/** Forgets a copy. */
export function forget(id: string): void {
  const left = copies().filter((one) => one.id !== id);
  saveChoice('copies', left.length ? JSON.stringify(left) : undefined);
}

/** Whether the person took a copy away that is made by itself: then it is not made again. */
export function isDeclined(id: string): boolean {
  return listed('declined').includes(id);
}

/** Remembers that no copy of an application is wanted, or that one is. */
export function decline(id: string, wanted = true): void {
  const others = listed('declined').filter((one) => one !== id);
  const all = wanted ? [...others, id] : others;
  saveChoice('declined', all.length ? JSON.stringify(all) : undefined);
}

// biome-ignore lint/suspicious/noExplicitAny: what a browser keeps may be anything
function listed(name: 'copies' | 'declined'): any[] {
  try {
    const all = JSON.parse(readChoice(name) ?? '[]');
    return Array.isArray(all) ? all : [];
  } catch {
    return [];
  }
}
