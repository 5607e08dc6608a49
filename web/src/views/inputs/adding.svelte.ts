// Adds pictures to an application. It reads, hashes and sends a few at a time, and continues while the person visits other pages.

import { base64Of } from '../../api/blobs';
import type { Schemas, V2 } from '../../api/client';
import { Failure } from '../../api/console';
import type { Application } from '../../host/application.svelte';
import { countInputs, existsCodes } from '../../host/calls';
import { messageOf } from '../../text/problem';
import { bytesToHex } from '../look/consistency';
import { placeOf } from '../look/place';
import { add, hashes, hashOf, type Item, isDone, mostInputs, patch } from './calls';
import type { Reason } from './leftOut';
import { memoByKey } from './memo';
import type { Source } from './sources';

const together = 16; // maximum pictures of one call; few, so that progress is visible soon
const mostBytes = 24_000_000; // maximum bytes of one call
const [leastRetryMillis, mostRetryMillis] = [1000, 15_000]; // times to wait after failures
const lanes = 2; // parallel calls: the page reads pictures for one while the host analyses those of the other

export type State = 'waiting' | 'reading' | 'stored' | 'skipped' | 'failed';

/** The relation of a stored picture to another: the same bytes, the same picture, or a similar one. */
export interface Twin {
  readonly tier: Schemas['Tier'];
  readonly id: string;
}

/** One picture of an addition. */
export class Entry {
  readonly source: Source;
  is = $state<State>('waiting');
  id = $state('');
  failure = $state.raw<{ code: number; description: string; details: string }>();
  place = $state.raw<{ latitude: number; longitude: number }>(); // place in the metadata of the file
  twin = $state.raw<Twin>();
  isPlaceWritten = false; // the stored input has the place
  hash = ''; // SHA-256 of the file
  isOtherId = $state(false); // its ID belongs to another picture, so it has another one

  constructor(source: Source) {
    this.source = source;
  }
}

type Counts = Record<State, number>;

export class Adding {
  readonly app: Application;
  entries = $state.raw<readonly Entry[]>([]);
  counts = $state<Counts>({ waiting: 0, reading: 0, stored: 0, skipped: 0, failed: 0 });
  bytes = $state({ done: 0, all: 0 });
  places = $state(0); // number of pictures with their place in the file
  usePlaces = $state(false);
  paused = $state(false);
  failure = $state.raw<unknown>(); // the failure for which the addition waits
  gathering = $state(0); // sources that are still being opened
  leftOut = $state<Partial<Record<Reason, number>>>({}); // numbers of files that were left out on purpose
  otherIds = $state(0); // number of stored pictures with another ID
  #queue: Entry[] = []; // waiting entries
  #running = $state(0);
  #startedAt = 0;
  #spent = 0; // milliseconds of work before the last pause
  #now = $state(0);
  #done = $state(0); // number of entries finished in that time
  #retryMillis = leastRetryMillis;
  #retryTimer: ReturnType<typeof setTimeout> | undefined; // while the addition waits after a failure
  #twinSearch: Promise<void> = Promise.resolve();
  #stored: Map<string, string> | undefined; // hashes of the inputs of the application, by ID; undefined: not listed
  #listing: Promise<Map<string, string>> | undefined;
  #storedCount: Promise<number> | undefined; // number of inputs of the application

  constructor(app: Application) {
    this.app = app;
  }

  get busy(): boolean {
    return this.#running > 0 || this.gathering > 0;
  }

  /** Whether pictures wait or are being sent. */
  get isUnfinished(): boolean {
    return this.busy || this.counts.waiting > 0;
  }

  get done(): number {
    return this.counts.stored + this.counts.skipped + this.counts.failed;
  }

  /** Pictures per second since the start, without pauses; undefined until there is enough progress for an estimate. */
  get rate(): number | undefined {
    const time = this.#spent + (this.#running ? this.#now - this.#startedAt : 0);
    return time > 400 && this.#done ? (this.#done * 1000) / time : undefined;
  }

  get secondsLeft(): number | undefined {
    return this.rate && Math.ceil((this.entries.length - this.done) / this.rate);
  }

  /** Adds sources to the queue and starts to send them while further sources are still being read. */
  async take(brought: AsyncIterable<Source> | Iterable<Source>): Promise<void> {
    if (!this.busy && this.done === this.entries.length) this.clear();
    if (!this.#stands) this.failure = undefined;
    this.gathering++;
    let batch: Entry[] = [];
    const flush = () => {
      this.entries = [...this.entries, ...batch];
      this.#queue.push(...batch.filter(({ is }) => is === 'waiting'));
      batch = [];
      this.#run();
    };
    try {
      for await (const source of brought) {
        if (source.leftOut) {
          this.leftOut[source.leftOut] = (this.leftOut[source.leftOut] ?? 0) + 1;
          continue;
        }
        const entry = new Entry(source);
        this.counts.waiting++;
        this.bytes.all += source.blob?.size ?? 0;
        batch.push(entry);
        if (source.problem !== undefined || source.unread)
          this.#fail(entry, { code: 0, description: source.problem ?? unreadText(source), details: '' });
        if (batch.length >= 256) flush();
      }
    } catch (failure) {
      this.failure = failure;
    } finally {
      flush();
      this.gathering--;
    }
  }

  pause = (): void => {
    this.paused = true;
    this.#endWait();
  };
  resume = (): void => {
    [this.paused, this.failure] = [false, undefined];
    this.#endWait();
    this.#run();
  };

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
    this.#queue = [];
    this.entries = this.entries.filter((entry) => {
      if (entry.is !== 'waiting') return true;
      this.counts.waiting--;
      this.bytes.all -= entry.source.blob?.size ?? 0;
      return false;
    });
    [this.paused, this.failure] = [false, undefined];
    this.#endWait();
  };

  /** Removes the finished entries from the list. */
  clear = (): void => {
    this.entries = this.entries.filter(({ is }) => is === 'waiting' || is === 'reading');
    this.counts = { ...this.counts, stored: 0, skipped: 0, failed: 0 };
    this.bytes = { done: 0, all: this.entries.reduce((sum, { source }) => sum + (source.blob?.size ?? 0), 0) };
    [this.places, this.#done, this.#spent, this.otherIds] = [0, 0, 0, 0];
    this.leftOut = {};
    [this.#stored, this.#listing, this.#storedCount] = [undefined, undefined, undefined];
  };

  retry(entry: Entry): void {
    entry.failure = undefined;
    this.bytes.done -= entry.source.blob?.size ?? 0;
    this.#move(entry, 'waiting');
    this.#queue.push(entry);
    this.#run();
  }

  skip(entry: Entry): void {
    this.entries = this.entries.filter((one) => one !== entry);
    this.counts[entry.is]--;
  }

  /** Sets whether inputs get the places in their files. It also changes the inputs that are already stored. */
  async setPlaces(use: boolean): Promise<void> {
    this.usePlaces = use;
    const turned = this.entries.filter((e) => e.is === 'stored' && e.place && e.isPlaceWritten !== use);
    for (let n = 0; n < turned.length; n += mostInputs) {
      const batch = turned.slice(n, n + mostInputs);
      const items = await patch(
        this.app,
        use ? 'overwrite' : 'remove',
        batch.map((e) => ({ id: e.id, data: { geo: { geo_point: e.place } } })),
      );
      for (const [i, entry] of batch.entries()) if (items[i] && isDone(items[i])) entry.isPlaceWritten = use;
    }
  }

  /** Whether a person has paused the addition, or it waits after a failure. */
  get #stands(): boolean {
    return this.paused || this.#retryTimer !== undefined;
  }

  #run(): void {
    while (this.#running < lanes && this.#queue.length > 0 && !this.#stands) {
      if (!this.#running++) this.#startedAt = this.#now = performance.now();
      void this.#lane().finally(() => {
        if (!--this.#running) this.#spent += performance.now() - this.#startedAt;
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

  #next(): Entry[] {
    let [count, bytes] = [0, 0];
    for (const { source } of this.#queue) {
      bytes += source.blob?.size ?? 0;
      if (count && (bytes > mostBytes || count >= (source.blob ? together : mostInputs))) break;
      count++;
    }
    return this.#queue.splice(0, count);
  }

  async #send(batch: readonly Entry[]): Promise<void> {
    try {
      await this.#list();
    } catch {
      // Without the list, the host refuses the inputs that exist.
    }
    const read = await Promise.all(batch.map((entry) => this.#body(entry)));
    const sent = batch.filter((_, i) => read[i]);
    const bodies = read.filter((body) => body !== undefined);
    if (!sent.length) return;
    try {
      const items = await add(this.app, bodies);
      [this.failure, this.#retryMillis] = [undefined, leastRetryMillis];
      for (const [i, entry] of sent.entries()) if (items[i]) await this.#settle(entry, items[i]);
      this.#done += items.length;
      this.#seek(sent);
    } catch (failure) {
      const refused =
        failure instanceof Failure &&
        failure.status >= 400 &&
        failure.status < 500 &&
        failure.status !== 401 &&
        failure.status !== 429;
      if (refused) {
        const { code, description, details } = failure;
        for (const entry of sent) this.#fail(entry, { code, description, details });
        return;
      }
      // The host did not answer, had an error, or refuses the credential. The entries wait again.
      for (const entry of sent) this.#move(entry, 'waiting');
      this.#queue.unshift(...sent);
      this.#wait(failure);
    }
  }

  /** Lists the inputs of the application once that takes at most one call for 100 entries. */
  async #list(): Promise<void> {
    if (this.#stored) return;
    this.#storedCount ??= countInputs(this.app.v2).then(({ all }) => all);
    const calls = Math.ceil((await this.#storedCount) / hashes.rows);
    if (calls > Math.max(1, this.entries.length / 100)) return;
    this.#listing ??= hashes.list(this.app);
    this.#stored = await this.#listing;
  }

  /**
   * Returns the request for a picture, or undefined if it fails or exists. Without an ID of a list, the ID is the first half of the SHA-256 of
   * the bytes, so the same file is the same input. An ID that belongs to another picture gets the start of the SHA-256.
   */
  async #body(entry: Entry): Promise<Schemas['NewInput'] | undefined> {
    const { blob, url, id, crop, concepts, metadata, geo, file } = entry.source;
    const rest = { ...(concepts && { concepts }), ...(geo && { geo }) };
    if (!blob) {
      entry.id = id ?? '';
      return {
        ...(id && { id }),
        data: { image: { url, ...(crop && { crop }) }, ...rest, ...(metadata && { metadata }) },
      };
    }
    try {
      const bytes = await blob.arrayBuffer();
      const [hash, base64, place] = await Promise.all([
        crypto.subtle.digest('SHA-256', bytes),
        base64Of(blob),
        placeOf(bytes),
      ]);
      entry.hash = bytesToHex(hash);
      if (!entry.isOtherId) entry.id = id ?? entry.hash.slice(0, 32);
      if (this.#isOther(entry)) return undefined;
      if (place && !geo) {
        if (!entry.place) this.places++;
        entry.place = place;
        entry.isPlaceWritten = this.usePlaces;
      }
      return {
        id: entry.id,
        data: {
          image: { base64, ...(crop && { crop }) },
          ...(file ? { metadata: withFile(metadata, file) } : metadata && { metadata }),
          ...rest,
          ...(entry.place && entry.isPlaceWritten && { geo: { geo_point: entry.place } }),
        },
      };
    } catch (failure) {
      this.#fail(entry, { code: 0, description: messageOf(failure), details: '' });
      return undefined;
    }
  }

  /** Finishes an entry whose picture is stored with its ID. If the ID belongs to another picture, the entry gets another one. */
  #isOther(entry: Entry): boolean {
    for (;;) {
      const stored = this.#stored?.get(entry.id);
      if (stored === undefined) return false;
      if (stored === entry.hash) {
        entry.twin = { tier: 'same_file', id: entry.id };
        this.#finish(entry, 'skipped');
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
      if (entry.hash) this.#stored?.set(entry.id, entry.hash);
      if (entry.isOtherId) this.otherIds++;
      this.#finish(entry, 'stored');
      if (entry.place && entry.isPlaceWritten !== this.usePlaces) void this.setPlaces(this.usePlaces); // the choice changed meanwhile
    } else if (existsCodes.includes(code)) {
      let same: boolean | undefined;
      try {
        same = entry.source.blob && (await this.#isSame(entry));
      } catch (failure) {
        this.#fail(entry, { code: 0, description: messageOf(failure), details: '' });
        return;
      }
      if (same === false && !entry.isOtherId) {
        [entry.id, entry.isOtherId] = [otherId(entry.id, entry.hash), true];
        this.#move(entry, 'waiting');
        this.#queue.unshift(entry);
        return;
      }
      if (same) entry.twin = { tier: 'same_file', id: entry.id };
      entry.failure = { code, description, details };
      if (same === false) this.#fail(entry, entry.failure);
      else this.#finish(entry, 'skipped');
    } else this.#fail(entry, { code, description, details });
  }

  /** Reports whether the stored input with the entry's ID has its picture. An input without a picture yet has another one. */
  async #isSame(entry: Entry): Promise<boolean> {
    return (!entry.source.id && !entry.isOtherId) || (await hashOf(this.app, entry.id)) === entry.hash;
  }

  #fail(entry: Entry, failure: { code: number; description: string; details: string }): void {
    entry.failure = failure;
    this.#finish(entry, 'failed');
  }

  #finish(entry: Entry, state: State): void {
    this.bytes.done += entry.source.blob?.size ?? 0;
    this.#move(entry, state);
  }

  #move(entry: Entry, state: State): void {
    this.counts[entry.is]--;
    entry.is = state;
    this.counts[state]++;
  }

  /** Looks for duplicates of the new inputs, one after the other. */
  #seek(batch: readonly Entry[]): void {
    for (const entry of batch) {
      if (entry.is !== 'stored' || !entry.source.blob) continue;
      this.#twinSearch = this.#twinSearch.then(async () => {
        try {
          const find = async (v2: V2) => {
            const params = { path: { input_id: entry.id }, query: { per_page: 1 } };
            const [first] = (await v2.GET('/inputs/{input_id}/duplicates', { params })).duplicates;
            if (first) entry.twin = { tier: first.tier, id: first.input.id };
            return first;
          };
          const first = await find(this.app.v2);
          // A host needs the bytes of both pictures to tell a re-encoded picture from a similar one. A replica may lack the bytes of the
          // older picture. The origin has them, and it has those of the new picture once the replica has sent it.
          if (first?.tier === 'similar' && this.app.by === 'device' && (await this.app.waitUntilSent(entry.id)))
            await find(this.app.remote);
        } catch {
          // The input is stored. Its page shows similar pictures.
        }
      });
    }
  }
}

const maxIdBytes = 128;
const maxFileBytes = 4096;
const maxMetadataBytes = 65_536;

const unreadText = ({ unread }: Source) => (typeof unread === 'object' ? unread.why : (unread ?? ''));

/** Returns the start of a text, at most n bytes of UTF-8, without a part of a character at the end. */
function cut(text: string, n: number): string {
  const bytes = new Uint8Array(n);
  return text.slice(0, new TextEncoder().encodeInto(text, bytes).read);
}

/** Returns the ID of a picture whose ID belongs to another one. */
function otherId(id: string, hash: string): string {
  const end = `~${hash.slice(0, 8)}`;
  return cut(id, maxIdBytes - end.length) + end;
}

/** Returns metadata with the path of a file. A member `file` of a list counts before it. */
function withFile(metadata: unknown, file: string): unknown {
  if (metadata === undefined || metadata === null) return { file: cut(file, maxFileBytes) };
  if (typeof metadata !== 'object' || Array.isArray(metadata)) return metadata;
  const all = { file: cut(file, maxFileBytes), ...metadata };
  return new TextEncoder().encode(JSON.stringify(all)).length > maxMetadataBytes ? metadata : all;
}

/**
 * Returns the addition to an application. It exists as long as the pages are open. Its waiting pictures exist in this page only, so the
 * browser asks before the page is left.
 */
export const adding = memoByKey((app: Application) => {
  const work = new Adding(app);
  addEventListener('beforeunload', (event) => {
    if (work.isUnfinished) event.preventDefault();
  });
  return work;
});
