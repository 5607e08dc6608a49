// The writes at a host that is not the origin, and their progress. The host is a replica on this device or the edge that serves these
// pages. All displayed facts are read from the host, and none is derived from a person's actions.
import { type Fetch, listAll, type Schemas, type V2, v2 } from '../api/client';
import { coalesce } from './coalesce';
import { type Marks, marksOf, type Subject, type SyncSummary } from './syncMarks';

/** The sync status of a host. */
export type Status = Schemas['Copy'];
/** A write at the host that the origin's log has not confirmed yet. */
export type Pending = Schemas['Operation'];
/** A write that had another effect in the log than intended. */
export type Conflict = Schemas['Conflict'];
/** Values of one label, name, part of metadata or place whose makers did not know of each other's. */
export type Contradiction = Schemas['Contradiction'];

/** The conflicts of a host, each list oldest first. */
export interface Conflicts {
  readonly conflicts: readonly Conflict[];
  readonly contradictions: readonly Contradiction[];
  readonly dropped: number; // number of contradictions that left the list
}

const many = 1000; // pending operations; a longer list is not read completely at each change. It is also the most that one call lists
const newestPage = 100; // size of the pages with the newest pending operations

/**
 * Reports progress since the status `before`: new log entries, new pending operations, or an application that the origin withdrew. If
 * before is undefined, the previous state is unknown, which counts as progress.
 */
function hasProgress(before: Status | undefined, now: Status): boolean {
  if (!before) return true;
  const countPending = (s: Status) => s.queued + s.sent;
  const wasPurged = now.phase === 'purged' && before.phase !== 'purged';
  return wasPurged || before.cursor !== now.cursor || countPending(now) > countPending(before);
}

/** Returns the thing that a contradiction marks. A label marks its input alone, and the deletion of an input marks nothing. */
const subjectOf = ({ field, input_id, model_id, concept_id }: Contradiction): Subject =>
  field === 'name' ? { model_id, concept_id } : field === 'deletion' ? {} : { input_id };

/** Reports whether two statuses count the same operations, as far as the numbers show. */
const hasSameOperations = (a: Status, b: Status): boolean =>
  a.cursor === b.cursor && a.queued === b.queued && a.sent === b.sent && a.conflicts === b.conflicts;

/** Reports whether lists that were read after the status `listed` have all operations that another status counts. */
const isListed = (status: Status, listed: Status | undefined): boolean =>
  status.queued + status.sent + status.conflicts === 0 || (listed !== undefined && hasSameOperations(status, listed));

/** Lists the undismissed conflicts and the contradictions of a host. */
export async function listConflicts(host: V2): Promise<Conflicts> {
  let dropped = 0;
  const all = await listAll(async (query) => {
    const page = await host.GET('/sync/conflicts', { params: { query } });
    dropped = page.dropped;
    return page.conflicts;
  }, many);
  const isContradiction = (c: Conflict | Contradiction): c is Contradiction => c.verdict === 'contradiction';
  return {
    conflicts: all.filter((c): c is Conflict => !isContradiction(c)),
    contradictions: all.filter(isContradiction),
    dropped,
  };
}

export abstract class Outbox implements Conflicts {
  status = $state.raw<Status>();
  pending = $state.raw<readonly Pending[]>([]); // in the order of sending
  conflicts = $state.raw<readonly Conflict[]>([]);
  contradictions = $state.raw<readonly Contradiction[]>([]);
  dropped = $state(0);
  dismissed = $state.raw<readonly Conflict[]>([]); // conflicts dismissed since the page was opened
  failure = $state.raw<unknown>(); // the failure of the last read; undefined if it succeeded
  /** The outbox calls this after progress, once it has read the pending operations again. */
  onprogress: () => void = () => {};
  #isUnreported = false; // progress since the last call of onprogress
  #listedFor = $state.raw<Status>(); // the status before the last reads of the lists
  #readAt = $state(0); // when the last read of the status began, as performance.now()
  #answeredAt = $state(0); // when the host last answered with data, as performance.now()
  #full = 0; // earliest time of the next complete read, as performance.now()
  #later: ReturnType<typeof setTimeout> | undefined;

  /** Sends a request of /v2 to the host. */
  abstract readonly ask: Fetch;
  /** The calls of /v2 at the host. */
  readonly v2 = v2((path, init) => this.ask(path, init));
  /** Reads the sync status of the host; undefined if it is unknown, or if the host is closed. */
  protected abstract readStatus(): Promise<Status | undefined>;
  /** Whether a failed read is an error. After closing, failures are ignored. */
  protected abstract readonly reads: boolean;
  /** Whether the origin is known to have all writes once no operation is pending. */
  protected abstract readonly reached: boolean;
  /** Whether the host reports that the origin is unreachable. */
  abstract readonly offline: boolean;

  /** The marks of unconfirmed changes and of conflicts. */
  readonly marks: Marks = $derived(marksOf(this.pending, [...this.conflicts, ...this.contradictions.map(subjectOf)]));

  /**
   * Whether the marks have all operations in the data that the host has answered. Otherwise a thing without a mark may have pending
   * operations, so nothing is known to be confirmed.
   */
  readonly areMarksCurrent: boolean = $derived.by(() => {
    if (!this.status) return true;
    return this.#readAt >= this.#answeredAt && isListed(this.status, this.#listedFor);
  });

  readonly syncSummary: SyncSummary = $derived.by(() => ({
    queued: this.status?.queued ?? 0,
    sent: this.status?.sent ?? 0,
    conflicts: this.status?.conflicts ?? this.conflicts.length, // the status reports the number before the conflicts are read
    reached: this.reached,
  }));

  /** Whether a path is that of an input whose creation is pending. The origin may not have the input yet. */
  creates(path: string): boolean {
    const id = /^\/v2\/inputs\/([^/?]+)/.exec(path)?.[1];
    return this.pending.some(({ kind, input_id }) => kind === 'input_create' && input_id === id);
  }

  /** Stores a status of the host. The next refresh reports its progress, no matter which answer or message contained the status. */
  protected setStatus(status: Status): void {
    if (JSON.stringify(status) === JSON.stringify(this.status)) return; // an equal status must not notify readers
    this.#isUnreported ||= hasProgress(this.status, status);
    this.status = status;
  }

  /**
   * Notes that the host has answered with data. They can have operations that are not listed yet, so the lists are read again. The next
   * refresh reports the progress: the data have it already.
   */
  noteAnswer(): void {
    this.#answeredAt = performance.now();
    void this.#check();
  }

  /** Whether the next refresh reports progress. */
  protected get hasUnreportedProgress(): boolean {
    return this.#isUnreported;
  }

  /** Reads the status, the pending operations and the conflicts, and reports progress. */
  refresh = coalesce(async () => {
    await this.#check();
    if (!this.#isUnreported) return;
    this.#isUnreported = false;
    this.onprogress();
  });

  #check = coalesce(async () => {
    try {
      const startedAt = performance.now();
      const status = await this.readStatus();
      if (status) await this.#read(status);
      this.#readAt = startedAt;
    } catch (failure) {
      if (this.reads) this.failure = failure;
    }
  });

  async #read(status: Status): Promise<void> {
    const before = this.status;
    const isRead = this.#listedFor && hasSameOperations(status, this.#listedFor);
    if (!isRead) {
      const all = status.queued + status.sent;
      const isPartial = this.#readsNewestOnly(all);
      const pending = !all ? [] : await (isPartial ? this.#readNewest(all) : this.#readPending());
      const listed = status.conflicts ? await listConflicts(this.v2) : { conflicts: [], contradictions: [] };
      Object.assign(this, { pending, ...listed });
      this.#listedFor = isPartial ? undefined : status;
    }
    if (this.status === before) this.setStatus(status); // otherwise a newer one was reported during the reads
    this.failure = undefined;
  }

  /** Reports whether a read leaves out all but the newest of many operations. If so, a later refresh reads all of them. */
  #readsNewestOnly(all: number): boolean {
    const wait = this.#full - performance.now();
    if (all <= many || wait <= 0 || !this.pending.length) return false;
    this.#later ??= setTimeout(() => {
      this.#later = undefined;
      void this.refresh();
    }, wait);
    return true;
  }

  /** Reads all pending operations. */
  async #readPending(): Promise<readonly Pending[]> {
    const startedAt = performance.now();
    const operations = await listAll((query) => this.#listPending(query), many);
    this.#full = performance.now() + 4 * (performance.now() - startedAt);
    return operations;
  }

  /** Returns the listed operations with the newest of `all` operations. */
  async #readNewest(all: number): Promise<readonly Pending[]> {
    const byId = new Map(this.pending.map((o) => [`${o.writer}-${o.seq}`, o]));
    for (const o of await this.#listNewest(all)) byId.set(`${o.writer}-${o.seq}`, o);
    return [...byId.values()];
  }

  /** Lists a page of the pending operations, in the order in which they are sent. */
  async #listPending(query: { page: number; per_page: number }): Promise<readonly Pending[]> {
    return (await this.v2.GET('/sync/outbox', { params: { query } })).operations;
  }

  /** Lists the last of `all` pending operations: at least the newest 100, or all if there are fewer. */
  async #listNewest(all: number): Promise<Pending[]> {
    const last = Math.max(1, Math.ceil(all / newestPage));
    const found: Pending[] = [];
    for (let page = Math.max(1, last - 1); page <= last; page++)
      found.push(...(await this.#listPending({ page, per_page: newestPage })));
    return found;
  }

  /** Dismisses a conflict. */
  async dismiss(c: Conflict): Promise<void> {
    await this.v2.DELETE('/sync/conflicts/{conflict_id}', { params: { path: { conflict_id: c.id } } });
    await this.refresh();
    this.dismissed = [c, ...this.dismissed];
  }

  /** Cancels the later reads. */
  protected cancelReads(): void {
    clearTimeout(this.#later);
  }
}
