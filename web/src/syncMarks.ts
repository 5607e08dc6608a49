// Displays the progress of a change: five marks, each with one meaning. The mark of a change is never ahead of the copy's report.

/** In the order of travel: kept here only; in the outbox; the origin has it; read back from its log; decided otherwise. */
export const marks = ['local', 'queued', 'sent', 'confirmed', 'conflict'] as const;
export type Mark = (typeof marks)[number];

const worstFirst: readonly Mark[] = ['conflict', 'queued', 'sent', 'local', 'confirmed'];

/** The worst of several; undefined for none. */
export function worst(all: Iterable<Mark>): Mark | undefined {
  const here = new Set(all);
  return worstFirst.find((mark) => here.has(mark));
}

/** The kind and the id of a thing that an operation names: an input, a model or a concept. */
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

/** The part of a copy's status that its marks need. */
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

/** The text about the contact next to a truth, from the same facts: it never reports contact without one. */
export function contactOf(t: Truth, offline: boolean, contact: string, now: number): Contact {
  if (!contact && !t.reached) return 'never';
  if (!offline) return contact ? 'connected' : 'seeking';
  return !contact || now - Date.parse(contact) < lately ? 'lost' : 'before';
}

/** The parts of the truth line, in this order: not their texts. */
export type Said = 'unreached' | 'offline' | 'queued' | 'sent' | 'conflicts' | 'confirmed';

/** The parts for a copy. It is never "confirmed" while operations are pending or unread, or before the origin was reached. */
export function saidOf(t: Truth, offline: boolean): readonly Said[] {
  const counts = (['queued', 'sent', 'conflicts'] as const).filter((one) => t[one] > 0);
  if (!counts.length && !t.reached) return ['unreached'];
  return [...(offline ? (['offline'] as const) : []), ...(counts.length ? counts : (['confirmed'] as const))];
}
