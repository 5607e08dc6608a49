// The keys that a person pasted at an edge. They are in the browser's session storage, which ends with this tab and is hidden from other
// tabs. The local storage never contains them.

/** An application and the key that opens it. */
export interface PastedKey {
  readonly id: string;
  readonly name: string;
  readonly language: string;
  readonly authorization: string; // value of the Authorization header
}

const name = 'held';

let keys = $state.raw<readonly PastedKey[]>(read());

/** Returns the pasted keys, in the order of pasting. */
export function pastedKeys(): readonly PastedKey[] {
  return keys;
}

/** Returns the key of an application; undefined if there is none. */
export function pastedKeyFor(id: string): PastedKey | undefined {
  return keys.find((one) => one.id === id);
}

/** Stores a key, and replaces another of the same application. */
export function addPastedKey(one: PastedKey): void {
  lastRefused = undefined;
  write([...keys.filter(({ id }) => id !== one.id), one]);
}

/** Removes the key of an application. */
export function removePastedKey(id: string): void {
  if (pastedKeyFor(id)) write(keys.filter((one) => one.id !== id));
}

let lastRefused = $state.raw<PastedKey>();

/** Returns the last refused key; undefined if there is none, or if another was pasted since. */
export function refusedKey(): PastedKey | undefined {
  return lastRefused;
}

/** Deletes a key that no longer opens its application. */
export function refuseKey(id: string): void {
  lastRefused = pastedKeyFor(id) ?? lastRefused;
  removePastedKey(id);
}

function write(all: readonly PastedKey[]): void {
  keys = all;
  try {
    if (all.length) sessionStorage.setItem(name, JSON.stringify(all));
    else sessionStorage.removeItem(name);
  } catch {
    // The keys are valid until the page is closed.
  }
}

function read(): readonly PastedKey[] {
  try {
    const found = JSON.parse(sessionStorage.getItem(name) ?? '[]');
    return Array.isArray(found)
      ? found.filter((one) => typeof one?.authorization === 'string' && typeof one.id === 'string')
      : [];
  } catch {
    return [];
  }
}
