// The sync status and the pending operations of the edge that serves these pages. They are read while an application is open.
import type { Fetch } from '../api/client';
import { Failure } from '../api/console';
import { m } from '../i18n/shared';
import { Outbox, type Status } from './outbox.svelte';

const pause = 2000; // ms between two reads of the status while the page is visible
const maxPause = 30_000; // ms, reached while the edge does not answer

export class EdgeStatus extends Outbox {
  readonly ask: Fetch;
  /** Whether the application exists at this edge only. Its log then has every write at once. */
  isLocal = $state(false);
  /** The failure that reports that the key lacks the permission to read the sync status; undefined if it has it. */
  readFailure = $state.raw<Failure>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #pause = pause;
  #closed = false;

  constructor(ask: Fetch, onprogress: () => void) {
    super();
    this.ask = ask;
    this.onprogress = onprogress;
  }

  /** Returns the text that replaces the time of the last contact. cut: the edge does not answer. */
  statusText(cut: boolean): string {
    return cut
      ? m.sync_summary_edge_unreachable()
      : this.isLocal
        ? m.sync_summary_standalone()
        : this.readFailure
          ? m.sync_summary_forbidden()
          : '';
  }

  /** Polls the status until the edge has none to report, ever less often while the edge does not answer. */
  async start(): Promise<void> {
    this.#pause = (await this.#poll()) ? pause : Math.min(2 * this.#pause, maxPause);
    if (!this.#closed && !this.isLocal && !this.readFailure)
      this.#timer = setTimeout(() => void this.start(), this.#pause);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.cancelReads();
  }

  /** Reads the status, and reports whether the edge answered. If the status has changed, it also reads the pending operations. */
  async #poll(): Promise<boolean> {
    if (document.visibilityState === 'hidden') return true;
    const status = await this.readStatus().catch((failure) => {
      if (failure instanceof Failure && failure.status === 401) this.close();
    });
    if (this.#closed || !status) return false;
    if (this.hasUnreportedProgress || JSON.stringify(status) !== JSON.stringify(this.status)) await this.refresh();
    return true;
  }

  protected override async readStatus(): Promise<Status | undefined> {
    try {
      const { copy } = await this.v2.GET('/sync/status');
      this.readFailure = undefined;
      return copy;
    } catch (failure) {
      if (!(failure instanceof Failure)) throw failure;
      if (failure.status === 404) this.isLocal = true;
      else if (failure.code === 11007) this.readFailure = failure;
      else throw failure;
      return undefined;
    }
  }

  protected get reads(): boolean {
    return !this.#closed;
  }

  protected get reached(): boolean {
    return this.isLocal || this.status?.contact !== undefined;
  }

  /** Whether the edge reports that its origin is unreachable. */
  readonly offline = $derived.by(() => {
    const { phase = 'current', problem } = this.status ?? {};
    return phase === 'unreachable' || phase === 'stopped' || (phase === 'connecting' && problem !== undefined);
  });
}
