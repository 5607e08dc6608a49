// Which picture of a list was looked at last, so that the list opens again where a person left it.

interface ListPosition {
  readonly id: string;
  readonly at: number; // its place in the list, from 0
}

const positions = new Map<string, ListPosition>();

/** Notes that a picture of an application's list was looked at. q: the list's query in the address. */
export function savePosition(app: string, q: string | null, id: string, at: number): void {
  positions.set(`${app} ${q ?? ''}`, { id, at });
}

/** The picture of a list that was looked at last since the page was loaded. */
export function lastPosition(app: string, q: string | null): ListPosition | undefined {
  return positions.get(`${app} ${q ?? ''}`);
}
