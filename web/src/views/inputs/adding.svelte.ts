// Adds pictures to an application. It stores them in a queue first, and then reads, hashes and sends a few at a time. One tab works through
// the queue, also after a reload; the others show it. A picture's file stays in the queue until the origin has the picture.

import { untrack } from 'svelte';
import type { Schemas } from '../../api/client';
import { Failure } from '../../api/console';
import type { Application } from '../../host/application.svelte';
import { existsCodes } from '../../host/calls';
import { coalesce } from '../../host/coalesce';
import { messageOf } from '../../text/problem';
import { add, hashOf, type Item, isDone, mostInputs, patch } from './calls';
import { Entry, type Failed, problem, type State } from './entry.svelte';
import { KeptFiles, type Settled } from './fate';
import { otherId } from './identity';
import type { Reason } from './leftOut';
import { Library } from './library';
import { memoByKey } from './memo';
import { Queue, UnstoredFile } from './queue';
import { requestOf } from './request';
import type { Source } from './sources';
import { findTwin } from './twins';

const together = 16; // maximum pictures of one call; few, so that progress is visible soon
const mostBytes = 24_000_000; // maximum bytes of one call
const [leastRetryMillis, mostRetryMillis] = [1000, 15_000]; // times to wait after failures
const lanes = 2; // parallel calls: the page reads pictures for one while the host analyses those of the other
const mostStored = 256; // maximum entries that are stored in one step
const mostStoredBytes = 64_000_000; // maximum bytes of them
const pullMillis = 1000; // time between two reads of a queue that other tabs change
const suspendedCode = 39998; // the host has no room

type Counts = Record<State, number>;

export class Adding {
  readonly app: Application;
  entries = $state.raw<readonly Entry[]>([]);
  counts = $state<Counts>(noCounts());
  bytes = $state({ done: 0, all: 0 });
  usePlaces = $state(false);
  paused = $state(false);
  isOpen = $state(false); // whether the page shows the list
  isElsewhere = $state(false); // another tab adds the pictures of the queue
  stores = $state<boolean>(); // whether the browser stores the queue; undefined: not known yet
  isFull = $state(false); // the queue had no room for a file
  failure = $state.raw<unknown>(); // the failure for which the addition waits
  gathering = $state(0); // sources that are still being opened
  leftOut = $state<Partial<Record<Reason, number>>>({}); // numbers of files that were left out on purpose
  #queue: Queue | undefined;
  #opening: Promise<void> | undefined;
  #leads = false; // this page works through the queue
  #waiting: Entry[] = [];
  #running = $state(0);
  #startedAt = 0;
  #spent = 0; // milliseconds of work before the last pause
  #now = $state(0);
  #done = $state(0); // number of entries finished in that time
  #earlierRate = $state<number>(); // pictures per second before this page was opened
  #batch = 1; // pictures of the next call
  #retryMillis = leastRetryMillis;
  #retryTimer: ReturnType<typeof setTimeout> | undefined; // while the addition waits after a failure
  #pullTimer: ReturnType<typeof setTimeout> | undefined;
  readonly #kept: KeptFiles;
  #twinSearch: Promise<void> = Promise.resolve();
  #drains: (() => void)[] = []; // additions that wait until fewer files are in memory
  #library: Library; // the pictures of the application

  constructor(app: Application) {
    this.app = app;
    this.#library = new Library(app);
    this.#kept = new KeptFiles(app, (entry, fate) => this.#meet(entry, fate));
  }

  /** Notes the fate of a picture whose file was kept until now. */
  #meet(entry: Entry, fate: Settled): void {
    if (fate === 'stored') {
      entry.hasFile = false;
      if (entry.isCleared && entry.key !== undefined) void this.#queue?.remove([entry.key]).catch(() => {});
      else void this.#save(entry);
      return;
    }
    if (entry.isCleared) this.entries = [...this.entries, entry];
    entry.isCleared = false;
    this.#count();
    if (fate === 'lost') this.#again(entry);
    else this.#rename(entry);
    void this.#save(entry);
    this.#run();
  }

  /** Continues a stored addition of this application, if there is one. */
  async begin(): Promise<void> {
    if ((await Queue.apps()).includes(this.app.id)) await this.#open();
  }

  #open(): Promise<void> {
    this.#opening ??= (async () => {
      const queue = await Queue.open(this.app.id);
      this.stores = queue !== undefined;
      this.#leads = queue === undefined;
      if (!queue) return;
      this.#queue = queue;
      const { ended } = this.app;
      ended.addEventListener('abort', () => this.#close());
      queue.onchange = () => {
        this.#pullTimer ??= setTimeout(() => {
          this.#pullTimer = undefined;
          void this.#pull();
        }, pullMillis);
      };
      await this.#pull();
      void queue
        .lead(ended, () => (this.isElsewhere = true))
        .then(
          async () => {
            [this.#leads, this.isElsewhere] = [true, false];
            await this.#pull();
          },
          () => {}, // the page is being left
        );
    })();
    return this.#opening;
  }

  #close(): void {
    this.#endWait();
    this.#endDrains();
    this.#kept.close();
    clearTimeout(this.#pullTimer);
    this.#waiting = [];
    this.#leads = false;
    this.#queue?.close();
    this.#queue = undefined;
  }

  /** Reads the queue: its entries, also those that other tabs have added, changed or removed, and the settings. */
  #pull = coalesce(async () => {
    const queue = this.#queue;
    if (!queue) return;
    const [stored, settings] = await Promise.all([queue.list(), queue.settings()]).catch(() => []);
    if (!stored) return; // the queue was deleted, as by signing out
    const known = new Map([...this.entries, ...this.#kept.all].map((entry) => [entry.key, entry]));
    const all = [...stored].map(([key, state]) => {
      const entry = known.get(key);
      if (!entry) return Entry.of(key, state);
      return entry.is === 'reading' ? entry : entry.take(state);
    });
    this.entries = [...all.filter((e) => !e.isCleared), ...this.entries.filter(({ key }) => key === undefined)];
    if (this.#leads) for (const entry of all) if (entry.is === 'stored' && entry.hasFile) this.#kept.add(entry);
    if (settings) {
      this.usePlaces = settings.usesPlaces;
      this.#earlierRate ??= settings.rate;
      if (settings.isPaused !== this.paused) settings.isPaused ? this.pause() : this.resume();
    }
    this.#count();
    this.#waiting = this.entries.filter((entry) => entry.is === 'waiting' && this.#adds(entry));
    this.#run();
  });

  #count(): void {
    const [counts, bytes] = [noCounts(), { done: 0, all: 0 }];
    for (const { is, size } of this.entries) {
      counts[is]++;
      bytes.all += size;
      if (is !== 'waiting' && is !== 'reading') bytes.done += size;
    }
    [this.counts, this.bytes] = [counts, bytes];
  }

  get busy(): boolean {
    return this.#running > 0 || this.gathering > 0;
  }

  /** Whether pictures wait or are being sent. */
  get isUnfinished(): boolean {
    return this.busy || this.left > 0;
  }

  /** Whether pictures would be lost if this page were closed: they wait, and the browser does not store them. */
  get needsPage(): boolean {
    if (this.gathering > 0) return true;
    return this.isUnfinished && this.entries.some((e) => e.key === undefined && ['waiting', 'reading'].includes(e.is));
  }

  get done(): number {
    return this.counts.stored + this.counts.skipped + this.counts.failed;
  }

  /** Returns the number of entries of a kind. It is computed again when a count changes, and not for each entry. */
  countOf(isOne: (entry: Entry) => boolean): number {
    void [this.counts.stored, this.counts.failed];
    return untrack(() => this.entries.filter(isOne).length);
  }

  /** The number of pictures with their place in the file. */
  get places(): number {
    return this.countOf(({ place }) => place !== undefined);
  }

  /** The number of stored pictures with another ID than intended. */
  get otherIds(): number {
    return this.countOf(({ is, isOtherId }) => is === 'stored' && isOtherId);
  }

  /** Pictures per second since the start, without pauses, or at first those of the last addition; undefined if nothing is known. */
  get rate(): number | undefined {
    const time = this.#spent + (this.#running ? this.#now - this.#startedAt : 0);
    return time > 400 && this.#done ? (this.#done * 1000) / time : this.#earlierRate;
  }

  get secondsLeft(): number | undefined {
    return this.rate && Math.ceil(this.left / this.rate);
  }

  /** Stores sources in the queue, and adds them while further sources are still being read. */
  async take(brought: AsyncIterable<Source> | Iterable<Source>): Promise<void> {
    this.gathering++;
    await this.#open();
    if (this.gathering === 1 && !this.#running && this.done === this.entries.length) this.clear();
    if (!this.#stands) this.failure = undefined;
    let [batch, bytes, most]: [Entry[], number, number] = [[], 0, 8];
    const flush = async () => {
      const stored = batch;
      [batch, bytes, most] = [[], 0, Math.min(2 * most, mostStored)];
      await this.#store(stored);
    };
    try {
      for await (const source of brought) {
        if (source.leftOut) {
          this.leftOut[source.leftOut] = (this.leftOut[source.leftOut] ?? 0) + 1;
          continue;
        }
        const entry = new Entry(source);
        bytes += entry.size;
        batch.push(entry);
        if (batch.length >= most || bytes >= mostStoredBytes) await flush();
      }
    } catch (failure) {
      this.failure = failure;
    } finally {
      await flush();
      this.gathering--;
    }
  }

  /** Stores entries and their files, and lists them. Those for which there is no room stay in this page. */
  async #store(entries: readonly Entry[]): Promise<void> {
    const size = entries.reduce((sum, entry) => sum + entry.size, 0);
    const queue = this.#queue;
    if (queue && entries.length && (await queue.hasRoom(size))) {
      try {
        const stored = entries.map((e) => ({ entry: { ...e.stored, hasFile: e.blob !== undefined }, file: e.blob }));
        const keys = await queue.add(stored);
        for (const [i, entry] of entries.entries()) {
          entry.key = keys?.[i];
          if (!keys || !entry.blob) continue;
          [entry.blob, entry.hasFile] = [undefined, true];
        }
      } catch (failure) {
        if (!(failure instanceof UnstoredFile)) throw failure;
        if (entries.length > 1) {
          for (const entry of entries) await this.#store([entry]);
          return;
        }
        for (const entry of entries)
          [entry.is, entry.failure] = ['failed', problem(messageOf(failure.cause ?? failure))];
      }
    }
    this.isFull ||= queue !== undefined && entries.some(({ key, is }) => key === undefined && is === 'waiting');
    this.entries = [...this.entries, ...entries];
    this.#count();
    const waiting = entries.filter(({ is }) => is === 'waiting');
    this.#waiting.push(...waiting.filter((entry) => this.#adds(entry)));
    this.#run();
    await this.#drain();
  }

  /** Whether this page adds an entry. It adds those that exist here only, also while another tab works through the queue. */
  #adds({ key }: Entry): boolean {
    return this.#leads || key === undefined;
  }

  /** Waits while files in memory, such as those of a zip, are too many. */
  async #drain(): Promise<void> {
    const isHeld = ({ blob, is, source }: Entry) => blob && source.isInMemory && ['waiting', 'reading'].includes(is);
    const held = () => this.entries.filter(isHeld).reduce((sum, { size }) => sum + size, 0);
    while (held() > mostStoredBytes && !this.app.ended.aborted)
      await new Promise<void>((resolve) => this.#drains.push(resolve));
  }

  #endDrains(): void {
    for (const resolve of this.#drains.splice(0)) resolve();
  }

  pause = (): void => {
    this.paused = true;
    this.#endWait();
    this.#saveSettings();
  };
  resume = (): void => {
    [this.paused, this.failure] = [false, undefined];
    this.#endWait();
    this.#saveSettings();
    this.#run();
  };

  #saveSettings(): void {
    const { rate, paused: isPaused, usePlaces: usesPlaces } = this;
    void this.#queue?.saveSettings({ isPaused, usesPlaces, rate }).catch(() => {});
  }

  /** Tries again after a time that doubles with each failure. Nobody needs to press a button once the host answers again. */
  #wait(failure: unknown): void {
    this.failure = failure;
    if (this.paused || this.#retryTimer !== undefined) return;
    this.#retryTimer = setTimeout(() => {
      this.#endWait();
      this.#run();
    }, this.#retryMillis);
    this.#retryMillis = Math.min(2 * this.#retryMillis, mostRetryMillis);
  }

  #endWait(): void {
    clearTimeout(this.#retryTimer);
    this.#retryTimer = undefined;
  }

  /** Removes the waiting entries. */
  cancel = (): void => {
    this.#waiting = [];
    this.#remove(({ is }) => is === 'waiting');
    [this.paused, this.failure] = [false, undefined];
    this.#endWait();
    this.#saveSettings();
  };

  /** Removes the finished entries from the list. A file that is kept until the origin has the picture stays in the queue. */
  clear = (): void => {
    for (const entry of this.entries.filter(({ is, hasFile }) => is === 'stored' && hasFile)) {
      entry.isCleared = true;
      void this.#save(entry);
    }
    this.entries = this.entries.filter((entry) => !entry.isCleared);
    this.#remove(({ is }) => ['stored', 'skipped', 'failed'].includes(is));
    [this.#done, this.#spent, this.isFull] = [0, 0, false];
    this.leftOut = {};
    this.#library = new Library(this.app);
  };

  retry = (entry: Entry): void => {
    entry.failure = undefined;
    this.#move(entry, 'waiting');
    void this.#save(entry);
    if (!this.#adds(entry)) return;
    this.#waiting.push(entry);
    this.#run();
  };

  retryAll = (): void => {
    for (const entry of this.entries) if (entry.is === 'failed' && entry.isRepeatable) this.retry(entry);
  };

  skip(entry: Entry): void {
    this.#remove((one) => one === entry);
  }

  #remove(isRemoved: (entry: Entry) => boolean): void {
    const removed = this.entries.filter(isRemoved);
    this.entries = this.entries.filter((entry) => !isRemoved(entry));
    this.#count();
    this.#endDrains();
    void this.#queue?.remove(removed.flatMap(({ key }) => key ?? [])).catch(() => {});
  }

  /** Sets whether inputs get the places in their files. It also changes the inputs that are already stored. */
  async setPlaces(use: boolean): Promise<void> {
    this.usePlaces = use;
    this.#saveSettings();
    const turned = this.entries.filter((e) => e.is === 'stored' && e.place && e.isPlaceWritten !== use);
    for (let n = 0; n < turned.length; n += mostInputs) {
      const batch = turned.slice(n, n + mostInputs);
      const items = await patch(
        this.app,
        use ? 'overwrite' : 'remove',
        batch.map((e) => ({ id: e.id, data: { geo: { geo_point: e.place } } })),
      );
      for (const [i, entry] of batch.entries()) {
        if (!items[i] || !isDone(items[i])) continue;
        entry.isPlaceWritten = use;
        void this.#save(entry);
      }
    }
  }

  /** Whether a person has paused the addition, or it waits after a failure. */
  get #stands(): boolean {
    return this.paused || this.#retryTimer !== undefined || this.app.ended.aborted;
  }

  #run(): void {
    while (this.#running < lanes && this.#waiting.length > 0 && !this.#stands) {
      if (!this.#running++) this.#startedAt = this.#now = performance.now();
      void this.#lane().finally(() => {
        if (--this.#running) return;
        this.#spent += performance.now() - this.#startedAt;
        if (this.#done) this.#saveSettings(); // the next page shows the rate from the start
      });
    }
  }

  async #lane(): Promise<void> {
    for (;;) {
      const batch = this.#stands ? [] : this.#next();
      if (!batch.length) return;
      for (const entry of batch) this.#move(entry, 'reading');
      await this.#send(batch);
      this.#now = performance.now();
    }
  }

  /** Takes the entries of the next call. The first calls have few, so that the rate is known soon. */
  #next(): Entry[] {
    let [count, bytes] = [0, 0];
    for (const { size, isFile } of this.#waiting) {
      bytes += size;
      if (count && (bytes > mostBytes || count >= (isFile ? this.#batch : mostInputs))) break;
      count++;
    }
    this.#batch = Math.min(2 * this.#batch, together);
    return this.#waiting.splice(0, count);
  }

  async #send(batch: readonly Entry[]): Promise<void> {
    try {
      await this.#library.list(this.entries.length);
    } catch {
      // Without the list, the host refuses the inputs that exist.
    }
    const read = await Promise.all(batch.map((entry) => this.#body(entry)));
    const sent = batch.filter((_, i) => read[i]);
    const bodies = read.filter((body) => body !== undefined);
    if (!sent.length) return;
    for (const entry of sent) entry.isSent = true;
    await Promise.all(sent.map((entry) => this.#save(entry)));
    try {
      const items = await add(this.app, bodies);
      [this.failure, this.#retryMillis] = [undefined, leastRetryMillis];
      for (const [i, entry] of sent.entries()) if (items[i]) await this.#settle(entry, items[i]);
      this.#done += items.length;
      this.#seek(sent);
    } catch (failure) {
      if (failure instanceof Failure && isRefusal(failure.status)) {
        const { code, description, details } = failure;
        for (const entry of sent) this.#fail(entry, { code, description, details });
        return;
      }
      // The host did not answer, had an error or no room, or refuses the credential. The entries wait again.
      for (const entry of sent) this.#move(entry, 'waiting');
      this.#waiting.unshift(...sent);
      this.#wait(failure);
    }
  }

  /** Returns the request for a picture, or undefined if it fails or exists. */
  async #body(entry: Entry): Promise<Schemas['NewInput'] | undefined> {
    entry.isRepeated = entry.isSent;
    try {
      const body = await requestOf(entry, await this.#fileOf(entry), this.usePlaces);
      return entry.isFile && this.#isOther(entry) ? undefined : { ...body, id: entry.id };
    } catch (failure) {
      this.#fail(entry, problem(messageOf(failure)));
      return undefined;
    }
  }

  async #fileOf({ blob, isFile, key }: Entry): Promise<Blob | undefined> {
    if (blob || !isFile) return blob;
    const stored = key === undefined ? undefined : await this.#queue?.file(key);
    if (!stored) throw new DOMException('the file is not stored any more', 'NotFoundError');
    return stored;
  }

  /** Finishes an entry whose picture is stored with its ID. If the ID belongs to another picture, the entry gets another one. */
  #isOther(entry: Entry): boolean {
    for (;;) {
      const stored = this.#library.hashOf(entry.id);
      if (stored === undefined) return false;
      if (stored === entry.hash) {
        this.#finishKnown(entry);
        return true;
      }
      if (entry.isOtherId) return false; // the host refuses it
      [entry.id, entry.isOtherId] = [otherId(entry.id, entry.hash), true];
    }
  }

  async #settle(entry: Entry, item: Item): Promise<void> {
    const { code, description, details = '' } = item.status;
    if (isDone(item)) {
      entry.id = item.id;
      if (entry.hash) this.#library.note(entry.id, entry.hash);
      this.#finish(entry, 'stored');
      if (entry.place && entry.isPlaceWritten !== this.usePlaces) void this.setPlaces(this.usePlaces); // the choice changed meanwhile
    } else if (code === suspendedCode) {
      this.#again(entry);
      this.#wait(new Failure(507, item.status));
    } else if (existsCodes.includes(code)) {
      let same: boolean | undefined;
      try {
        // An input without a picture yet has another one.
        same = entry.isFile ? (await hashOf(this.app, entry.id)) === entry.hash : undefined;
      } catch (failure) {
        this.#fail(entry, problem(messageOf(failure)));
        return;
      }
      if (same === false && !entry.isOtherId) {
        this.#rename(entry);
        return;
      }
      const failure = { code, description, details };
      if (same === false) this.#fail(entry, failure);
      else if (same) this.#finishKnown(entry);
      else this.#finish(entry, entry.isRepeated ? 'stored' : 'skipped');
    } else this.#fail(entry, { code, description, details });
  }

  /** Finishes an entry whose picture the host has under its ID: from an earlier addition, or from a call whose answer was lost. */
  #finishKnown(entry: Entry): void {
    if (!entry.isRepeated) entry.twin = { tier: 'same_file', id: entry.id };
    this.#finish(entry, entry.isRepeated ? 'stored' : 'skipped');
  }

  #rename(entry: Entry): void {
    [entry.id, entry.isOtherId, entry.isSent] = [otherId(entry.id, entry.hash), true, false];
    this.#again(entry);
  }

  #again(entry: Entry): void {
    this.#move(entry, 'waiting');
    this.#waiting.unshift(entry);
  }

  #fail(entry: Entry, failure: Failed): void {
    entry.failure = failure;
    this.#finish(entry, 'failed');
  }

  #finish(entry: Entry, state: 'stored' | 'skipped' | 'failed'): void {
    this.#move(entry, state);
    this.#endDrains();
    if (state !== 'failed') entry.blob = undefined;
    // Without other hosts, the origin has answered. Otherwise the file stays until the origin has the picture.
    if (state === 'skipped' || (state === 'stored' && !this.app.outbox)) entry.hasFile = false;
    void this.#save(entry);
    if (state === 'stored' && entry.hasFile) this.#kept.add(entry);
  }

  #move(entry: Entry, state: State): void {
    const wasDone = !['waiting', 'reading'].includes(entry.is);
    const isDone = !['waiting', 'reading'].includes(state);
    if (wasDone !== isDone) this.bytes.done += isDone ? entry.size : -entry.size;
    this.counts[entry.is]--;
    entry.is = state;
    this.counts[state]++;
  }

  async #save(entry: Entry): Promise<void> {
    if (entry.key !== undefined) await this.#queue?.save(entry.key, entry.stored).catch(() => {});
  }

  /** Looks for duplicates of the new inputs, one after the other. */
  #seek(batch: readonly Entry[]): void {
    for (const entry of batch)
      if (entry.is === 'stored' && entry.isFile)
        this.#twinSearch = this.#twinSearch.then(() =>
          findTwin(this.app, entry.id, (twin) => {
            entry.twin = twin;
            void this.#save(entry);
          }),
        );
  }

  get left(): number {
    return this.counts.waiting + this.counts.reading;
  }
}

const noCounts = (): Counts => ({ waiting: 0, reading: 0, stored: 0, skipped: 0, failed: 0 });

/** Reports whether a host refuses a call for good. A credential can be restored, and a limit of calls ends. */
const isRefusal = (status: number): boolean => status >= 400 && status < 500 && ![401, 403, 408, 429].includes(status);

/** Returns the addition to an application. It exists as long as the pages are open. */
export const adding = memoByKey((app: Application) => {
  const work = new Adding(app);
  addEventListener('beforeunload', (event) => {
    if (work.needsPage) event.preventDefault();
  });
  return work;
});
