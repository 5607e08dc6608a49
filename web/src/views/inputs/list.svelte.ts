// The inputs that match clauses, as a list that only ever holds a few pages of itself. In the order of creation the
// newest stands first, counted from the end: pages keep their content while inputs are added.
import { SvelteMap } from 'svelte/reactivity';
import type { Application } from '../../application.svelte';
import { type Clause, ranks } from '../../clauses';
import { type Day, type Input, type ListedInput, page, summary } from './calls';

const size = 100; // inputs of a page
const bulk = 1000; // the most that one call lists
const most = 40; // pages that are held: some 2 MB

export class List {
  readonly app: Application;
  readonly clauses: readonly Clause[];
  /** By how well they fit, and not by the day. */
  readonly ranked: boolean;

  total = $state<number>();
  days = $state.raw<readonly Day[]>([]);

  #countFailure = $state.raw<unknown>(); // why it is not known how many there are
  #pageFailures = new SvelteMap<number, unknown>(); // why visible pages are missing
  #pages = new SvelteMap<number, readonly ListedInput[]>(); // from 0, the one used last at the end
  #stale = new Set<number>();
  #requests = new Map<number, Promise<void>>();
  #near = { from: 0, to: 0 };
  #sight = { low: 0, high: -1 }; // the pages of those
  #timer: ReturnType<typeof setTimeout> | undefined;
  #reading: Promise<void> | undefined;
  #again = false;
  #isClosed = false;

  constructor(app: Application, clauses: readonly Clause[]) {
    this.app = app;
    this.clauses = clauses;
    this.ranked = clauses.some(ranks);
  }

  /** Why the requested data are missing, or not current. It stays until they have come. */
  get failure(): unknown {
    return this.#countFailure ?? this.#pageFailures.values().next().value;
  }

  /** Whether nothing but the failure can be shown. */
  get bare(): boolean {
    return this.#nothing && this.failure !== undefined;
  }

  /** Whether nothing of it has come yet. */
  get waits(): boolean {
    return this.#nothing && this.failure === undefined;
  }

  get #nothing(): boolean {
    return this.#pages.size === 0 && this.total !== 0;
  }

  /** The input at a place, if it is loaded. */
  at(index: number): ListedInput | undefined {
    const n = this.#number(index);
    return n < 0 ? undefined : this.#pages.get(Math.floor(n / size))?.[n % size];
  }

  /** Reads the number of inputs and the displayed ones again. The loaded ones stay until then. */
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
      const { matching, days } = await summary(this.app, this.clauses);
      if (this.#isClosed) return;
      for (const n of this.#pages.keys()) this.#stale.add(n);
      [this.total, this.days, this.#countFailure] = [matching, days, undefined];
      if (!matching) this.#pageFailures.clear();
      this.#fetch();
    } catch (failure) {
      this.#countFailure = failure;
    }
  }

  /** Has the inputs of some places read. While the window races past them there is time. */
  near(from: number, to: number, fast: boolean): void {
    this.#near = { from, to };
    clearTimeout(this.#timer);
    if (fast) this.#timer = setTimeout(() => this.#fetch(), 60);
    else this.#fetch();
  }

  /** The inputs of some places, read again in large pages and not stored. */
  async *between(from: number, to: number): AsyncGenerator<Input> {
    let [number, held]: [number, readonly ListedInput[]] = [-1, []];
    for (let index = from; index < to; index++) {
      const n = this.#number(index);
      if (Math.floor(n / bulk) !== number) {
        number = Math.floor(n / bulk);
        held = await page(this.app, this.clauses, number + 1, bulk);
      }
      const one = held[n % bulk];
      if (one) yield one.input;
    }
  }

  /** Takes over what a write has answered with. */
  put(changed: ReadonlyMap<string, Partial<Input>>): void {
    for (const [n, all] of this.#pages) {
      if (!all.some(({ input }) => changed.has(input.id))) continue;
      const patched = all.map((one) => ({ ...one, input: { ...one.input, ...changed.get(one.input.id) } }));
      this.#pages.set(n, patched);
    }
  }

  /** Ends what is under way. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  /** The place of an index in the list that the interface has. */
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
    let here = true;
    const want = (n: number) => {
      here &&= this.#pages.has(n);
      if (this.#requests.has(n) || (this.#pages.has(n) && !this.#stale.has(n))) return;
      this.#requests.set(n, this.#load(n));
    };
    for (let n = low; n <= high; n++) want(n);
    // The next pages on both sides are read in advance, so that no tile is drawn without its words.
    if (here) for (const n of [low - 1, high + 1]) if (n >= 0 && n * size < this.total && !this.#pages.has(n)) want(n);
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
      // A page that was read in advance is requested again when it is needed.
      if (n >= this.#sight.low && n <= this.#sight.high) this.#pageFailures.set(n, failure);
    } finally {
      this.#requests.delete(n);
    }
    if (came) this.#fetch(); // it changed meanwhile, or there is time for its neighbours
  }

  /** Lets go of the pages that are farthest from those in sight. */
  #drop(low: number, high: number): void {
    if (this.#pages.size <= most) return;
    const away = (n: number) => (n < low ? low - n : n > high ? n - high : 0);
    const far = [...this.#pages.keys()].sort((a, b) => away(b) - away(a));
    for (const n of far.slice(0, this.#pages.size - most)) {
      this.#pages.delete(n);
      this.#stale.delete(n);
    }
  }
}
