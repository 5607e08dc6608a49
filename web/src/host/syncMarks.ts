// The five sync marks show the progress of a change. The mark of a change is never ahead of the replica's status.

/** The marks in the order of progress: stored only here; in the outbox; sent to the origin; read back from its log; in conflict. */
export const marks = ['local', 'queued', 'sent', 'confirmed', 'conflict'] as const;
export type MarkKind = (typeof marks)[number];

const worstFirst: readonly MarkKind[] = ['conflict', 'queued', 'sent', 'local', 'confirmed'];

/** Returns the worst of several marks; undefined if there are none. */
export function worstMark(all: Iterable<MarkKind>): MarkKind | undefined {
  const present = new Set(all);
  return worstFirst.find((mark) => present.has(mark));
}

/** The things that have marks. */
export type Marked = 'inputs' | 'concepts' | 'models' | 'versions';
export type Marks = Readonly<Record<Marked, ReadonlyMap<string, MarkKind>>>;

/** The subject of an operation: an input, a concept, a model, or a version of a model. */
export interface Subject {
  readonly kind?: string;
  readonly input_id?: string;
  readonly concept_id?: string;
  readonly model_id?: string;
  readonly version_id?: string;
}

/** Returns the key of a version in the marks. */
export const versionKey = (model: string, version: string): string => `${model}/${version}`;

const keys: Record<Marked, (operation: Subject) => string | undefined> = {
  inputs: (operation) => operation.input_id,
  concepts: (operation) => operation.concept_id,
  models: (operation) => operation.model_id,
  versions: ({ kind, model_id, version_id }) =>
    model_id && version_id && kind !== 'feedback' ? versionKey(model_id, version_id) : undefined, // feedback changes no version
};

/** Returns the marks of unconfirmed changes and of conflicts, by the id of the changed thing, or by the key of a version. */
export function marksOf(
  waiting: readonly (Subject & { readonly state: 'queued' | 'sent' })[],
  conflicts: readonly Subject[],
): Marks {
  const marksBy = (keyOf: (operation: Subject) => string | undefined) => {
    const found = new Map<string, MarkKind>();
    const addMark = (key: string | undefined, mark: MarkKind) => {
      if (key) found.set(key, worstMark([mark, found.get(key) ?? mark]) ?? mark);
    };
    for (const operation of waiting) addMark(keyOf(operation), operation.state);
    for (const conflict of conflicts) addMark(keyOf(conflict), 'conflict');
    return found;
  };
  return {
    inputs: marksBy(keys.inputs),
    concepts: marksBy(keys.concepts),
    models: marksBy(keys.models),
    versions: marksBy(keys.versions),
  };
}

/** Returns the number of added pictures that are not known to be stored anywhere else. */
export function countUnsentPictures(
  waiting: readonly { readonly kind: string; readonly state: 'queued' | 'sent' }[],
): number {
  return waiting.filter(({ kind, state }) => kind === 'input_create' && state === 'queued').length;
}

/** The part of a replica's status that its marks need. */
export interface SyncSummary {
  readonly queued: number;
  readonly sent: number;
  readonly conflicts: number;
  readonly reached: boolean; // whether the origin ever answered; if not, nothing is confirmed
}

/** Returns the mark of a replica; undefined if nothing is pending and the origin never answered. */
export function markOf(t: SyncSummary): MarkKind | undefined {
  const all: MarkKind[] = [];
  if (t.conflicts) all.push('conflict');
  if (t.queued) all.push('queued');
  if (t.sent) all.push('sent');
  if (!all.length && t.reached) all.push('confirmed');
  return worstMark(all);
}

/** The contact with the origin, in this order: never; not yet since the page was opened; current; lost within a minute; lost earlier. */
export type Contact = 'never' | 'seeking' | 'connected' | 'lost' | 'before';

const recentMillis = 60_000; // ms after which the time of a lost contact is shown; a shorter time would read like a current contact

/** Returns the contact to display next to a summary, from the same facts, so that the two do not contradict each other. */
export function contactOf(t: SyncSummary, offline: boolean, contact: string, now: number): Contact {
  if (!contact && !t.reached) return 'never';
  if (!offline) return contact ? 'connected' : 'seeking';
  return !contact || now - Date.parse(contact) < recentMillis ? 'lost' : 'before';
}

/** The parts of the sync summary, in this order, without their texts. */
export type SummaryPart = 'unreached' | 'offline' | 'queued' | 'sent' | 'conflicts' | 'confirmed';

/** Returns the parts for a replica. "confirmed" is not among them while operations are pending, or before the origin's first answer. */
export function summaryParts(t: SyncSummary, offline: boolean): readonly SummaryPart[] {
  const counts = (['queued', 'sent', 'conflicts'] as const).filter((one) => t[one] > 0);
  if (!counts.length && !t.reached) return ['unreached'];
  return [...(offline ? (['offline'] as const) : []), ...(counts.length ? counts : (['confirmed'] as const))];
}
