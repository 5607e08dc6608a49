// The writes at a host that is not the origin, and their progress. The host is a replica on this device or the edge that serves these
// pages. All displayed facts are read from the host, and none is derived from a person's actions.
import type { CopyStatus } from '../runtime/src/index';
import { call, type Fetch } from './apiCall';
import { coalesce } from './coalesce';
import { type Conflict, listConflicts, listNewest, listPending, type PendingOperation } from './operations';
import { marksById, type Truth } from './syncMarks';

const many = 1000; // pending operations; a longer list is not read completely at each change

/**
 * Reports progress since the status `before`: new log entries, new pending operations, or an application that the origin withdrew. If
 * before is undefined, the previous state is unknown, which counts as progress.
 */
function hasProgress(before: CopyStatus | undefined, now: CopyStatus): boolean {
  if (!before) return true;
  const countPending = (s: CopyStatus) => s.queued + s.sent;
  const wasPurged = now.phase === 'purged' && before.phase !== 'purged';
  return wasPurged || before.cursor !== now.cursor || countPending(now) > countPending(before);
}

export abstract class Outbox {
  status = $state.raw<CopyStatus>();
  pending = $state.raw<readonly PendingOperation[]>([]); // in the order of sending
  conflicts = $state.raw<readonly Conflict[]>([]);
  dismissed = $state.raw<readonly Conflict[]>([]); // conflicts dismissed since the page was opened
  failure = $state.raw<unknown>(); // the failure of the last read; undefined if it succeeded
  /** The outbox calls this after progress, once it has read the pending operations again. */
  onprogress: () => void = () => {};
  #isUnreported = false; // progress since the last call of onprogress
  #full = 0; // earliest time of the next complete read, as performance.now()
  #later: ReturnType<typeof setTimeout> | undefined;

  /** Sends a request of /v2 to the host. */
  abstract readonly ask: Fetch;
  /** Reads the sync status of the host; undefined if it is unknown, or if the host is closed. */
  protected abstract readStatus(): Promise<CopyStatus | undefined>;
  /** Whether a failed read is an error. After closing, failures are ignored. */
  protected abstract readonly reads: boolean;
  /** Whether the origin is known to have all writes once no operation is pending. */
  protected abstract readonly reached: boolean;
  /** Whether the host reports that the origin is unreachable. */
  abstract readonly offline: boolean;

  /** The marks of unconfirmed changes, by the id of the input, model or concept. */
  readonly marks = $derived({
    inputs: marksById('input_id', this.pending, this.conflicts),
    models: marksById('model_id', this.pending, this.conflicts),
    concepts: marksById('concept_id', this.pending, this.conflicts),
  });

  readonly truth: Truth = $derived.by(() => ({
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
  protected setStatus(status: CopyStatus): void {
    if (JSON.stringify(status) === JSON.stringify(this.status)) return; // an equal status must not notify readers
    this.#isUnreported ||= hasProgress(this.status, status);
    this.status = status;
  }

  /** Reads the status, the pending operations and the conflicts, and reports progress. */
  refresh = coalesce(async () => {
    try {
      const status = await this.readStatus();
      if (status) await this.#read(status);
    } catch (failure) {
      if (this.reads) this.failure = failure;
    }
    if (!this.#isUnreported) return;
    this.#isUnreported = false;
    this.onprogress();
  });

  async #read(status: CopyStatus): Promise<void> {
    const before = this.status;
    const all = status.queued + status.sent;
    const operations = all ? await this.#readPending(all) : [];
    const others = status.conflicts ? await listConflicts(this.ask) : [];
    if (this.status === before) this.setStatus(status); // otherwise a newer one was reported during the reads
    Object.assign(this, { pending: operations, conflicts: others, failure: undefined });
  }

  /** Returns the pending operations. If there are many, it reads only the newest at once. A later refresh reads all of them. */
  async #readPending(all: number): Promise<readonly PendingOperation[]> {
    const startedAt = performance.now();
    if (all > many && startedAt < this.#full && this.pending.length) {
      this.#later ??= setTimeout(() => {
        this.#later = undefined;
        void this.refresh();
      }, this.#full - startedAt);
      const byId = new Map(this.pending.map((o) => [`${o.writer}-${o.seq}`, o]));
      for (const o of await listNewest(this.ask, all)) byId.set(`${o.writer}-${o.seq}`, o);
      return [...byId.values()];
    }
    const operations = await listPending(this.ask);
    this.#full = performance.now() + 4 * (performance.now() - startedAt);
    return operations;
  }

  /** Dismisses a conflict. */
  async dismiss(c: Conflict): Promise<void> {
    await call(this.ask, 'DELETE', `/sync/conflicts/${encodeURIComponent(c.id)}`);
    await this.refresh();
    this.dismissed = [c, ...this.dismissed];
  }

  /** Cancels the later reads. */
  protected cancelReads(): void {
    clearTimeout(this.#later);
  }
}
