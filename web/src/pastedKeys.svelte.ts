// The keys that a person has pasted at an edge, for as long as this tab is open: the session storage of the browser holds
// them, which goes with the tab and which no other tab reads. The local storage never does.

/** An application, and what opens it. */
export interface PastedKey {
  readonly id: string;
  readonly name: string;
  readonly language: string;
  readonly authorization: string; // as the header has it
}

const name = 'held';

let all = $state.raw<readonly PastedKey[]>(read());

/** The pasted keys, in the order in which they were pasted. */
export function held(): readonly PastedKey[] {
  return all;
}

/** The key of an application; undefined: there is none. */
export function pastedKeyFor(id: string): PastedKey | undefined {
  return all.find((one) => one.id === id);
}

/** Stores a key, and replaces another of the same application. */
export function hold(one: PastedKey): void {
  gone = undefined;
  write([...all.filter(({ id }) => id !== one.id), one]);
}

/** Lets go of the key of an application. */
export function removeKey(id: string): void {
  if (pastedKeyFor(id)) write(all.filter((one) => one.id !== id));
}

let gone = $state.raw<PastedKey>();

/** The key that was refused last, since which none was pasted; undefined: none was. */
export function refused(): PastedKey | undefined {
  return gone;
}

/** Deletes a key that no longer opens its application. */
export function refuse(id: string): void {
  gone = pastedKeyFor(id) ?? gone;
  removeKey(id);
}

function write(held: readonly PastedKey[]): void {
  all = held;
  try {
    if (held.length) sessionStorage.setItem(name, JSON.stringify(held));
    else sessionStorage.removeItem(name);
  } catch {
    // It is held until the page is closed.
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
