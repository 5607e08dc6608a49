// What is shown of where a change is: five marks, each with one meaning. A change is never shown further than the
// copy says that it is.

/** In the order of travel: kept here only; in the outbox; the origin has it; read back from its log; decided otherwise. */
export const marks = ['local', 'queued', 'sent', 'confirmed', 'conflict'] as const;
export type Mark = (typeof marks)[number];

const worstFirst: readonly Mark[] = ['conflict', 'queued', 'sent', 'local', 'confirmed'];

/** The one that stands for several; undefined for none. */
export function worst(all: Iterable<Mark>): Mark | undefined {
  const here = new Set(all);
  return worstFirst.find((mark) => here.has(mark));
}

/** What an operation names, of what it names: an input, a model or a concept. */
export interface Naming {
  readonly input_id?: string;
  readonly concept_id?: string;
  readonly model_id?: string;
}

/** The mark of each thing of a kind that a change is about which is not confirmed, or has a conflict, by its id. */
export function marksOf(
  what: keyof Naming,
  waiting: readonly (Naming & { readonly state: 'queued' | 'sent' })[],
  conflicts: readonly Naming[],
): ReadonlyMap<string, Mark> {
  const found = new Map<string, Mark>();
  const put = (id: string | undefined, mark: Mark) => {
    if (id) found.set(id, worst([mark, found.get(id) ?? mark]) as Mark);
  };
  for (const operation of waiting) put(operation[what], operation.state);
  for (const conflict of conflicts) put(conflict[what], 'conflict');
  return found;
}

/** How many pictures that were added are nowhere else, as far as is known. */
export function onlyHere(waiting: readonly { readonly kind: string; readonly state: 'queued' | 'sent' }[]): number {
  return waiting.filter(({ kind, state }) => kind === 'input_create' && state === 'queued').length;
}

/** Where a copy stands, as far as its marks go. */
export interface Truth {
  readonly queued: number;
  readonly sent: number;
  readonly conflicts: number;
  readonly reached: boolean; // whether the origin ever answered: without, nothing can be confirmed
}

/** The mark of a whole copy; undefined while there is nothing to say. */
export function markOf(t: Truth): Mark | undefined {
  const all: Mark[] = [];
  if (t.conflicts) all.push('conflict');
  if (t.queued) all.push('queued');
  if (t.sent) all.push('sent');
  if (!all.length && t.reached) all.push('confirmed');
  return worst(all);
}

/** When a copy was last in contact: never, at first; now; a moment ago or before, where it is not any more. */
export type Contact = 'never' | 'seeking' | 'connected' | 'lost' | 'before';

const lately = 60_000; // ms: "reached this minute" would say that it is reached

/** What is said of the contact beside a truth, of the same facts: never that the origin is reached while it is not. */
export function contactOf(t: Truth, offline: boolean, contact: string, now: number): Contact {
  if (!contact && !t.reached) return 'never';
  if (!offline) return contact ? 'connected' : 'seeking';
  return !contact || now - Date.parse(contact) < lately ? 'lost' : 'before';
}

/** What the truth line says, in this order: not in so many words. */
export type Said = 'unreached' | 'offline' | 'queued' | 'sent' | 'conflicts' | 'confirmed';

/** What is said of a copy. Nothing is confirmed while something waits or is to be read, or before the origin was reached. */
export function saidOf(t: Truth, offline: boolean): readonly Said[] {
  const counts = (['queued', 'sent', 'conflicts'] as const).filter((one) => t[one] > 0);
  if (!counts.length && !t.reached) return ['unreached'];
  return [...(offline ? (['offline'] as const) : []), ...(counts.length ? counts : (['confirmed'] as const))];
}
