// Lists the pending operations and the conflicts of a replica by /v2.
import { call, type Fetch, listAll } from './apiCall';

/** A label by a person: 1 for present, 0 for absent, null for a removed label. */
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
  readonly hosted?: string; // URL of a new picture while its bytes are stored
}

/** A write at this replica. */
export interface Operation {
  readonly writer: string;
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

/** An operation that the replica has not read back from the log yet. */
export interface PendingOperation extends Operation {
  readonly state: 'queued' | 'sent';
}

/** An operation that had another effect in the log than intended. */
export interface Conflict extends Operation {
  readonly id: string; // "<writer>-<seq>"
  readonly verdict: string; // "gone"
  readonly reason?: string;
  readonly position: number; // in the log
}

const page = 1000; // the most that one call lists
const newestPage = 100; // size of the pages that listNewest reads

type Outbox = { readonly operations: PendingOperation[] };
const outbox = async (ask: Fetch, n: number, size: number) =>
  (await call<Outbox>(ask, 'GET', `/sync/outbox?page=${n}&per_page=${size}`)).operations;

/** Lists the unconfirmed operations, in the order in which they are sent. */
export const listPending = (ask: Fetch): Promise<PendingOperation[]> => listAll(page, (n) => outbox(ask, n, page));

/** Lists the last of `all` pending operations: at least the newest 100, or all if there are fewer. */
export async function listNewest(ask: Fetch, all: number): Promise<PendingOperation[]> {
  const last = Math.max(1, Math.ceil(all / newestPage));
  const found: PendingOperation[] = [];
  for (let n = Math.max(1, last - 1); n <= last; n++) found.push(...(await outbox(ask, n, newestPage)));
  return found;
}

/** Lists the undismissed conflicts, oldest first. */
export const listConflicts = (ask: Fetch): Promise<Conflict[]> =>
  listAll(
    page,
    async (n) =>
      (await call<{ conflicts: Conflict[] }>(ask, 'GET', `/sync/conflicts?page=${n}&per_page=${page}`)).conflicts,
  );
