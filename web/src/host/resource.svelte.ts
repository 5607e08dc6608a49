import { Failure } from '../api/console';
import { endSession } from './session.svelte';

/** Data from the server: undefined at first, then the answer, or the failure. If the session has ended, loading also ends it here. */
export class Resource<T> {
  data = $state.raw<T>();
  failure = $state.raw<unknown>();
  loading = $state(false);
  #ask: () => Promise<T>;
  #round = 0;

  constructor(ask: () => Promise<T>) {
    this.#ask = ask;
  }

  /** Requests the data, or requests them again. The previous data stay until the answer comes. */
  load = async (): Promise<void> => {
    const round = ++this.#round;
    this.loading = true;
    try {
      const data = await this.#ask();
      if (round !== this.#round) return; // a later request is running
      this.data = data;
      this.failure = undefined;
    } catch (failure) {
      if (round !== this.#round) return;
      this.failure = failure;
      if (failure instanceof Failure && failure.status === 401) endSession();
    } finally {
      if (round === this.#round) this.loading = false;
    }
  };
}

/** An action of a person. It is busy while its work runs, and then has the failure, if any. */
export class Action {
  failure = $state.raw<unknown>();
  #running = $state(0);

  get busy(): boolean {
    return this.#running > 0;
  }

  /** Runs the work unless other work runs, and reports whether it succeeded. */
  run = (work: () => Promise<void>): Promise<boolean> => (this.busy ? Promise.resolve(false) : this.runParallel(work));

  /** Runs the work in parallel with other work, and reports whether it succeeded. */
  runParallel = async (work: () => Promise<void>): Promise<boolean> => {
    this.#running++;
    this.failure = undefined;
    try {
      await work();
      return true;
    } catch (failure) {
      this.failure = failure;
      if (failure instanceof Failure && failure.status === 401 && failure.code !== 11002) endSession();
      return false;
    } finally {
      this.#running--;
    }
  };
}
