// The writes at a host that is not the origin, and their progress: at a copy on this device, or at the edge of these pages. All displayed
// facts are read from there; nothing is guessed from a person's actions.
import type { CopyStatus } from '../runtime/src/index';
import { call, type Fetch } from './apiCall';
import { coalesce } from './coalesce';
import { type Conflict, listConflicts, listNewest, listPending, type PendingOperation } from './operations';
import { marksById, type Truth } from './syncMarks';

const many = 1000; // changes that wait: more are not all read at each of them

/**
 * Whether the log has come on, something was written, or the origin took the application away, since before; undefined: nobody knows what
 * was read until now.
 */
function hasProgress(before: CopyStatus | undefined, now: CopyStatus): boolean {
  if (!before) return true;
  const countPending = (s: CopyStatus) => s.queued + s.sent;
  const taken = now.phase === 'purged' && before.phase !== 'purged';
  return taken || before.cursor !== now.cursor || countPending(now) > countPending(before);
}

export abstract class Outbox {
  status = $state.raw<CopyStatus>();
  pending = $state.raw<readonly PendingOperation[]>([]); // in the order of travel
  conflicts = $state.raw<readonly Conflict[]>([]);
  dismissed = $state.raw<readonly Conflict[]>([]); // since the page was opened
  failure = $state.raw<unknown>(); // why what waits is not known
  /** Called after progress, once the pending operations were read again. */
  onprogress: () => void = () => {};
  #isUnreported = false; // there was progress, and nobody was notified
  #full = 0; // when all pending operations may be read again, as performance.now()
  #later: ReturnType<typeof setTimeout> | undefined;

  /** Asks the place itself. */
  abstract readonly ask: Fetch;
  /** Reads the sync status of the host; undefined if it is unknown, or if the host is closed. */
  protected abstract readStatus(): Promise<CopyStatus | undefined>;
  /** Whether a failed read is an error: it is not after closing. */
  protected abstract readonly reads: boolean;
  /** Whether what is written there is known to be with the origin once nothing waits. */
  protected abstract readonly reached: boolean;
  /** Whether the origin is out of its reach, as far as it knows. */
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
    conflicts: this.status?.conflicts ?? this.conflicts.length, // told before they are read
    reached: this.reached,
  }));

  /** Stores the status of the host: each change of it is reported, whatever answer or message it came with. */
  protected setStatus(status: CopyStatus): void {
    if (JSON.stringify(status) === JSON.stringify(this.status)) return; // readers of changes need no notice of a repeated read
    this.#isUnreported ||= hasProgress(this.status, status);
    this.status = status;
  }

  /** Reads what waits and what was decided otherwise. */
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

  /** The pending operations. If there are many, it reads the newest at once, and the results of the others when it is idle. */
  async #readPending(all: number): Promise<readonly PendingOperation[]> {
    const began = performance.now();
    if (all > many && began < this.#full && this.pending.length) {
      this.#later ??= setTimeout(() => {
        this.#later = undefined;
        void this.refresh();
      }, this.#full - began);
      const known = new Map(this.pending.map((o) => [`${o.site}-${o.seq}`, o]));
      for (const o of await listNewest(this.ask, all)) known.set(`${o.site}-${o.seq}`, o);
      return [...known.values()];
    }
    const operations = await listPending(this.ask);
    this.#full = performance.now() + 4 * (performance.now() - began);
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
