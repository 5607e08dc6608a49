// The list of inputs that match clauses. It stores only a few pages. Without a ranking, the newest input is first. Its pages are
// counted from the oldest input, so that they keep their content while inputs are added.
import { SvelteMap } from 'svelte/reactivity';
import { type Clause, ranks } from '../../clauses';
import type { Application } from '../../host/application.svelte';
import { type Day, type Input, type ListedInput, page, summary } from './calls';

const size = 100; // inputs on a page
const bulk = 1000; // maximum number of inputs that one call lists
const maxPages = 40; // maximum number of stored pages, about 2 MB

export class List {
  readonly app: Application;
  readonly clauses: readonly Clause[];
  /** Whether the list is sorted by score, not by creation. */
  readonly ranked: boolean;

  total = $state<number>();
  days = $state.raw<readonly Day[]>([]);

  #countFailure = $state.raw<unknown>(); // failure of the last read of the total
  #pageFailures = new SvelteMap<number, unknown>(); // failures of visible pages, by page number
  #pages = new SvelteMap<number, readonly ListedInput[]>(); // by page number, from 0
  #stale = new Set<number>();
  #requests = new Map<number, Promise<void>>();
  #near = { from: 0, to: 0 };
  #sight = { low: 0, high: -1 }; // page numbers of #near
  #timer: ReturnType<typeof setTimeout> | undefined;
  #reading: Promise<void> | undefined;
  #again = false;
  #isClosed = false;

  constructor(app: Application, clauses: readonly Clause[]) {
    this.app = app;
    this.clauses = clauses;
    this.ranked = clauses.some(ranks);
  }

  /** The last failure to load the total or a visible page. It is undefined if all loads succeeded. */
  get failure(): unknown {
    return this.#countFailure ?? this.#pageFailures.values().next().value;
  }

  /** Whether there is only a failure to show. */
  get isUnfiltered(): boolean {
    return this.#nothing && this.failure !== undefined;
  }

  /** Whether the list waits for its first data. */
  get waits(): boolean {
    return this.#nothing && this.failure === undefined;
  }

  get #nothing(): boolean {
    return this.#pages.size === 0 && this.total !== 0;
  }

  /** Returns the input at an index. If its page is not loaded, it returns undefined. */
  at(index: number): ListedInput | undefined {
    const n = this.#number(index);
    return n < 0 ? undefined : this.#pages.get(Math.floor(n / size))?.[n % size];
  }

  /**
   * Reads the number of inputs and the displayed inputs again. The loaded ones stay until the answers arrive. The promise ends when the
   * number has arrived, before the inputs.
   */
  reload(): Promise<void> {
    if (this.#reading) {
      this.#again = true;
      return this.#reading;
    }
    this.#reading = this.#read().finally(() => {
      this.#reading = undefined;
      if (!this.#again || this.#isClosed) return;
      this.#again = false;
      void this.reload();
    });
    return this.#reading;
  }

  async #read(): Promise<void> {
    try {
      const { matching, days = [] } = await summary(this.app, this.clauses);
      if (this.#isClosed) return;
      for (const n of this.#pages.keys()) this.#stale.add(n);
      [this.total, this.days, this.#countFailure] = [matching, days, undefined];
      if (!matching) this.#pageFailures.clear();
      this.#fetch();
    } catch (failure) {
      this.#countFailure = failure;
    }
  }

  /** Loads the inputs at some indices. If fast is set, the window scrolls past them, so it waits for 60 ms first. */
  near(from: number, to: number, fast: boolean): void {
    this.#near = { from, to };
    clearTimeout(this.#timer);
    if (fast) this.#timer = setTimeout(() => this.#fetch(), 60);
    else this.#fetch();
  }

  /** Reads the inputs at some indices in large pages, without storing them. */
  async *between(from: number, to: number): AsyncGenerator<Input> {
    let [number, currentPage]: [number, readonly ListedInput[]] = [-1, []];
    for (let index = from; index < to; index++) {
      const n = this.#number(index);
      if (Math.floor(n / bulk) !== number) {
        number = Math.floor(n / bulk);
        currentPage = await page(this.app, this.clauses, number + 1, bulk);
      }
      const one = currentPage[n % bulk];
      if (one) yield one.input;
    }
  }

  /** Applies the answers of a write to the loaded inputs, by id. */
  put(changed: ReadonlyMap<string, Partial<Input>>): void {
    for (const [n, all] of this.#pages) {
      if (!all.some(({ input }) => changed.has(input.id))) continue;
      const patched = all.map((one) => ({ ...one, input: { ...one.input, ...changed.get(one.input.id) } }));
      this.#pages.set(n, patched);
    }
  }

  /** Cancels the delayed load. The list ignores answers that arrive later. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  /** Converts an index of this list into one of the API's list. */
  #number(index: number): number {
    return this.ranked ? index : (this.total ?? 0) - 1 - index;
  }

  #fetch(): void {
    const { from, to } = this.#near;
    if (to <= from || this.total === undefined) return;
    const ends = [this.#number(from), this.#number(Math.min(to, this.total) - 1)].map((n) =>
      Math.floor(Math.max(0, n) / size),
    );
    const [low, high] = [Math.min(...ends), Math.max(...ends)];
    this.#sight = { low, high };
    for (const n of this.#pageFailures.keys()) if (n < low || n > high) this.#pageFailures.delete(n);
    let isLoaded = true;
    const want = (n: number) => {
      isLoaded &&= this.#pages.has(n);
      if (this.#requests.has(n) || (this.#pages.has(n) && !this.#stale.has(n))) return;
      this.#requests.set(n, this.#load(n));
    };
    for (let n = low; n <= high; n++) want(n);
    // Read the pages on both sides in advance, so that scrolling shows no empty tiles.
    if (isLoaded)
      for (const n of [low - 1, high + 1]) if (n >= 0 && n * size < this.total && !this.#pages.has(n)) want(n);
    this.#drop(low, high);
  }

  async #load(n: number): Promise<void> {
    this.#stale.delete(n);
    let came = false;
    try {
      const found = await page(this.app, this.clauses, n + 1, size);
      if (this.#isClosed) return;
      this.#pages.set(n, found);
      this.#pageFailures.delete(n);
      came = true;
    } catch (failure) {
      // #fetch requests a page outside the visible ones again when it becomes visible.
      if (n >= this.#sight.low && n <= this.#sight.high) this.#pageFailures.set(n, failure);
    } finally {
      this.#requests.delete(n);
    }
    if (came) this.#fetch(); // reload the page if it changed meanwhile, or load its neighbours
  }

  /** Drops the pages that are farthest from the visible ones. */
  #drop(low: number, high: number): void {
    if (this.#pages.size <= maxPages) return;
    const distance = (n: number) => (n < low ? low - n : n > high ? n - high : 0);
    const far = [...this.#pages.keys()].sort((a, b) => distance(b) - distance(a));
    for (const n of far.slice(0, this.#pages.size - maxPages)) {
      this.#pages.delete(n);
      this.#stale.delete(n);
    }
  }
}
