// Polls the numbers of inputs: every second while pictures wait to be processed, otherwise every 5 seconds, or 30 on a hidden page and while no
// host answers.
import type { Application } from '../../host/application.svelte';
import { countInputs } from '../../host/calls';
import { secondsLeft } from '../../host/progress';

export class Counting {
  readonly app: Application;
  now = $state.raw<Awaited<ReturnType<typeof countInputs>>>();
  failure = $state.raw<unknown>();
  #marks = $state.raw<readonly { at: number; done: number }[]>([]); // progress marks; empty if no input is pending
  #timer: ReturnType<typeof setTimeout> | undefined;
  #onchange: () => void;

  /** onchange: called when the numbers have changed. */
  constructor(app: Application, onchange: () => void) {
    this.app = app;
    this.#onchange = onchange;
  }

  get all(): number | undefined {
    return this.now?.all;
  }

  /** Inputs per second over the last ten seconds; undefined until there is enough progress for an estimate. */
  get rate(): number | undefined {
    const [first, last] = [this.#marks[0], this.#marks.at(-1)];
    if (!first || !last || last.at - first.at < 900 || last.done <= first.done) return undefined;
    return ((last.done - first.done) * 1000) / (last.at - first.at);
  }

  /** Remaining seconds; undefined until there is enough progress for an estimate. */
  get secondsLeft(): number | undefined {
    const [first, last] = [this.#marks[0], this.#marks.at(-1)];
    if (!first || !last || !this.now) return undefined;
    return secondsLeft(first, last, last.done + this.now.to_process);
  }

  /** Reads the numbers, and schedules the next read. */
  read = async (): Promise<void> => {
    clearTimeout(this.#timer);
    try {
      const now = await countInputs(this.app.v2);
      if (this.#closed) return;
      const before = this.now;
      [this.now, this.failure] = [now, undefined];
      const mark = { at: performance.now(), done: now.processed + now.errors };
      const recent = this.#marks.filter((one) => mark.at - one.at < 10_000 && one.done <= mark.done);
      this.#marks = now.to_process ? [...recent, mark] : [];
      if (
        before &&
        (before.processed !== now.processed || before.to_process !== now.to_process || before.errors !== now.errors)
      )
        this.#onchange();
    } catch (failure) {
      this.failure = failure;
    }
    clearTimeout(this.#timer);
    const isQuiet = document.hidden || this.failure !== undefined;
    if (!this.#closed)
      this.#timer = setTimeout(() => void this.read(), isQuiet ? 30_000 : this.now?.to_process ? 1000 : 5000);
  };

  #closed = false;
  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }
}
