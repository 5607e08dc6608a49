// A bulk job on many inputs, in steps. It has the progress, the rate, the remaining time, and the failures.
import { Failure } from '../../api/console';
import { secondsLeft } from '../../host/progress';
import type { Item } from './calls';
import { isDone, mostInputs } from './calls';

export class Job {
  readonly name: string;
  readonly all: number;
  done = $state(0); // number of inputs written or failed
  failedItems = $state.raw<readonly Item[]>([]);
  failure = $state.raw<unknown>(); // the failure that stopped the job
  ended = $state(false);
  stopped = $state(false);
  #startedAt = performance.now();
  #now = $state(performance.now());

  constructor(name: string, all: number) {
    this.name = name;
    this.all = all;
  }

  get rate(): number {
    return (this.done * 1000) / Math.max(1, this.#now - this.#startedAt);
  }

  get secondsLeft(): number | undefined {
    return secondsLeft({ at: this.#startedAt, done: 0 }, { at: this.#now, done: this.done }, this.all);
  }

  /** Runs the job in steps of up to 128 inputs, until it ends, the person stops it, or a step throws. */
  async run<T>(things: readonly T[], step: (batch: readonly T[]) => Promise<readonly Item[]>): Promise<void> {
    this.#startedAt = performance.now();
    try {
      for (let n = 0; n < things.length && !this.stopped; n += mostInputs) {
        const batch = things.slice(n, n + mostInputs);
        const items = await step(batch);
        this.failedItems = [...this.failedItems, ...items.filter((item) => !isDone(item))];
        this.done += batch.length;
        this.#now = performance.now();
      }
    } catch (failure) {
      this.failure = failure;
    } finally {
      this.ended = true;
    }
  }

  stop = (): void => {
    this.stopped = true;
  };

  /** Throws the failure of the job, or the first failure if all inputs failed. */
  check(): void {
    if (this.failure !== undefined) throw this.failure;
    const [first] = this.failedItems;
    if (first && this.failedItems.length === this.done) {
      throw new Failure(200, first.status);
    }
  }
}
