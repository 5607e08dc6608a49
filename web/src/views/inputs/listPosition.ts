// Remembers the last viewed picture of each list, so that the list reopens at that picture.

interface ListPosition {
  readonly id: string;
  readonly at: number; // its index in the list, from 0
}

const positions = new Map<string, ListPosition>();

/** Saves the viewed picture of an application's list. q: the list's query in the URL. */
export function savePosition(app: string, q: string | null, id: string, at: number): void {
  positions.set(`${app} ${q ?? ''}`, { id, at });
}

/** Returns the last viewed picture of a list; undefined if the person viewed none since the page was loaded. */
export function lastPosition(app: string, q: string | null): ListPosition | undefined {
  return positions.get(`${app} ${q ?? ''}`);
}
