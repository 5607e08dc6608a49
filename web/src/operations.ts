// The operations of a copy, as /v2 lists them: what waits, and what the log took otherwise than it was meant.
import { type Ask, call, every } from './apiCall';

/** A label as a person gave it: true, false, or taken away. */
export interface Label {
  readonly id: string;
  readonly name?: string;
  readonly value: number | null;
}

/** The part of an operation's content that these pages read. */
export interface Content {
  readonly id?: string;
  readonly name?: string;
  readonly concepts?: readonly Label[];
  readonly metadata?: unknown;
  readonly geo?: unknown;
  readonly url?: string;
  readonly hosted?: string; // address of a new picture, while it is stored
}

/** A write of this copy's. */
export interface Operation {
  readonly site: number;
  readonly seq: number;
  readonly at: string;
  readonly by?: string;
  readonly kind: string; // "input_labels"
  readonly input_id?: string;
  readonly concept_id?: string;
  readonly model_id?: string;
  readonly version_id?: string;
  readonly content?: Content;
}

/** One that the log has not brought back yet. */
export interface Waiting extends Operation {
  readonly state: 'queued' | 'sent';
}

/** One that the log took otherwise than it was meant. */
export interface Conflict extends Operation {
  readonly id: string; // "<site>-<seq>"
  readonly verdict: string; // "gone"
  readonly reason?: string;
  readonly position: number; // in the log
}

const page = 1000; // the most that one call lists
const end = 100; // what is looked at to see what was just written

type Outbox = { readonly operations: Waiting[] };
const outbox = async (ask: Ask, n: number, size: number) =>
  (await call<Outbox>(ask, 'GET', `/sync/outbox?page=${n}&per_page=${size}`)).operations;

/** The unconfirmed operations, in the order in which they are sent. */
export const waiting = (ask: Ask): Promise<Waiting[]> => every(page, (n) => outbox(ask, n, page));

/** The last of so many pending operations, which include the newest. */
export async function newest(ask: Ask, all: number): Promise<Waiting[]> {
  const last = Math.max(1, Math.ceil(all / end));
  const found: Waiting[] = [];
  for (let n = Math.max(1, last - 1); n <= last; n++) found.push(...(await outbox(ask, n, end)));
  return found;
}

/** The undismissed conflicts, oldest first. */
export const conflicts = (ask: Ask): Promise<Conflict[]> =>
  every(
    page,
    async (n) =>
      (await call<{ conflicts: Conflict[] }>(ask, 'GET', `/sync/conflicts?page=${n}&per_page=${page}`)).conflicts,
  );
