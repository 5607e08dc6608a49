// The status of the edge of these pages, and its pending operations, which it returns as long as an application is open.
import type { CopyStatus } from '../runtime/src/index';
import { type Ask, call } from './apiCall';
import { Failure } from './console';
import { Outbox } from './outbox.svelte';
import { m } from './parts/words';

const pause = 2000; // ms between two questions, while the page is seen

export class Standing extends Outbox {
  readonly ask: Ask;
  /** The application is the edge's own: what is written is in its log at once. */
  alone = $state(false);
  /** The key may not read where the edge stands. */
  unseen = $state.raw<Failure>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  constructor(ask: Ask, onmoved: () => void) {
    super();
    this.ask = ask;
    this.onmoved = onmoved;
  }

  /** The text about the edge instead of the last contact with its origin. cut: it does not answer. */
  word(cut: boolean): string {
    return cut ? m.truth_edge_cut() : this.alone ? m.truth_alone() : this.unseen ? m.truth_unseen() : '';
  }

  /** Asks now, and then again and again, while the edge answers. */
  async begin(): Promise<void> {
    await this.#look();
    if (!this.#closed && !this.alone && !this.unseen) this.#timer = setTimeout(() => void this.begin(), pause);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.rest();
  }

  /** Reads the status, and the pending operations when it has changed. */
  async #look(): Promise<void> {
    if (document.visibilityState === 'hidden') return;
    const status = await this.standing().catch((failure) => {
      if (failure instanceof Failure && failure.status === 401) this.close();
    });
    if (this.#closed || !status || JSON.stringify(status) === JSON.stringify(this.status)) return;
    await this.refresh();
  }

  protected override async standing(): Promise<CopyStatus | undefined> {
    try {
      const { copy } = await call<{ copy: CopyStatus }>(this.ask, 'GET', '/sync/status');
      this.unseen = undefined;
      return copy;
    } catch (failure) {
      if (!(failure instanceof Failure)) throw failure;
      if (failure.status === 404) this.alone = true;
      else if (failure.code === 11007) this.unseen = failure;
      else throw failure;
      return undefined;
    }
  }

  protected get reads(): boolean {
    return !this.#closed;
  }

  protected get reached(): boolean {
    return this.alone || this.status?.contact !== undefined;
  }

  /** Whether the origin is out of the edge's reach, as far as the edge knows. */
  readonly offline = $derived.by(() => {
    const { phase = 'current', problem } = this.status ?? {};
    return phase === 'unreachable' || phase === 'stopped' || (phase === 'connecting' && problem !== undefined);
  });
}
