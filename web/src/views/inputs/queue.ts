// The stored queue of an application's additions, in the browser's database. All tabs of the application share it. An entry and its file are
// stored in one step before the page lists them, so a reload, a closed tab or a crash loses none. The browser reports a full disk before
// it has stored anything.
import { type DBSchema, deleteDB, type IDBPDatabase, openDB } from 'idb';
import type { StoredEntry } from './entry.svelte';

/** The choices of a person for an addition, and the rate of the last pictures. */
export interface Settings {
  readonly isPaused: boolean;
  readonly usesPlaces: boolean;
  readonly rate: number | undefined; // pictures per second
}

interface Schema extends DBSchema {
  entries: { key: number; value: StoredEntry };
  files: { key: number; value: Blob };
  settings: { key: string; value: Settings };
}

const prefix = 'additions-';

/** Returns the name of the database of an application. */
export const nameOf = (app: string): string => prefix + app;

/** Returns the application of a database, or undefined if it is not a queue. */
export const appOf = (name = ''): string | undefined =>
  name.startsWith(prefix) ? name.slice(prefix.length) : undefined;

const mostUse = 0.9; // part of the browser's storage that may be used, because the replica and the browser need the rest

/** Reports whether an error means that the browser has no more room. */
const isFull = (failure: unknown): boolean => failure instanceof DOMException && failure.name === 'QuotaExceededError';

/** A file that cannot be stored, such as one that was deleted after a person chose it. */
export class UnstoredFile extends Error {}

export class Queue {
  readonly #db: IDBPDatabase<Schema>;
  readonly #channel: BroadcastChannel;
  /** The queue calls this after another tab has changed it. */
  onchange: () => void = () => {};

  private constructor(db: IDBPDatabase<Schema>, name: string) {
    this.#db = db;
    this.#channel = new BroadcastChannel(name);
    this.#channel.onmessage = () => this.onchange();
  }

  /**
   * Opens the queue of an application, and creates it if there is none. It returns undefined if the browser stores nothing, or has no locks by
   * which one of several tabs is chosen.
   */
  static async open(app: string): Promise<Queue | undefined> {
    if (typeof indexedDB === 'undefined' || !navigator.locks) return undefined;
    const name = nameOf(app);
    try {
      const db = await openDB<Schema>(name, 1, {
        upgrade: (fresh) => {
          fresh.createObjectStore('entries', { autoIncrement: true });
          fresh.createObjectStore('files');
          fresh.createObjectStore('settings');
        },
        blocking: (_, __, { target }) => target instanceof IDBDatabase && target.close(), // another tab deletes the queue
      });
      return new Queue(db, name);
    } catch {
      return undefined;
    }
  }

  /** Returns the IDs of the applications with a queue. */
  static async apps(): Promise<string[]> {
    try {
      return (await indexedDB.databases()).flatMap(({ name }) => appOf(name) ?? []);
    } catch {
      return [];
    }
  }

  /** Returns the IDs of the applications with pictures that wait to be added, or with files of pictures. */
  static async unfinished(): Promise<string[]> {
    const find = async (app: string) => {
      const queue = await Queue.open(app);
      const isUnfinished = await queue?.isUnfinished().finally(() => queue.close());
      return isUnfinished ? [app] : [];
    };
    return (await Promise.all((await Queue.apps()).map(find))).flat();
  }

  /** Reports whether pictures wait to be added, or files are stored. */
  async isUnfinished(): Promise<boolean> {
    const [files, entries] = await Promise.all([this.#db.count('files'), this.#db.getAll('entries')]);
    return files > 0 || entries.some(({ is }) => is === 'waiting');
  }

  /** Deletes the queue of an application with all files. */
  static remove(app: string): Promise<void> {
    return deleteDB(nameOf(app));
  }

  /** Waits until no other tab adds the pictures of the queue. The caller adds them until the signal is aborted. */
  async lead(signal: AbortSignal, onbusy: () => void): Promise<void> {
    const { name } = this.#db;
    const { held = [] } = await navigator.locks.query();
    if (held.some((one) => one.name === name)) onbusy();
    return new Promise((resolve, reject) => {
      const lead = () => {
        resolve();
        return new Promise((end) => signal.addEventListener('abort', end));
      };
      navigator.locks.request(name, { signal }, lead).catch(reject);
    });
  }

  /** Returns all entries by their keys, in the order in which they were added. */
  async list(): Promise<Map<number, StoredEntry>> {
    const { store } = this.#db.transaction('entries');
    const [keys, entries] = await Promise.all([store.getAllKeys(), store.getAll()]);
    return new Map(keys.flatMap((key, i) => (entries[i] ? [[key, entries[i]]] : [])));
  }

  /** Reports whether there is room for bytes. */
  async hasRoom(bytes: number): Promise<boolean> {
    const { usage = 0, quota = 0 } = await navigator.storage.estimate().catch((): StorageEstimate => ({}));
    return quota === 0 || usage + bytes <= mostUse * quota;
  }

  /**
   * Stores entries with their files: all or none. It returns their keys, or undefined if there is no room. It throws UnstoredFile if the
   * browser cannot read a file.
   */
  async add(added: readonly { entry: StoredEntry; file: Blob | undefined }[]): Promise<number[] | undefined> {
    const tx = this.#db.transaction(['entries', 'files'], 'readwrite', { durability: 'strict' });
    try {
      const keys = added.map(async ({ entry, file }) => {
        const key = await tx.objectStore('entries').add(entry);
        if (file) await tx.objectStore('files').add(file, key);
        return key;
      });
      const [all] = await Promise.all([Promise.all(keys), tx.done]);
      this.#tell();
      return all;
    } catch (failure) {
      await tx.done.catch(() => {});
      if (isFull(failure) || isFull(tx.error)) return undefined;
      throw new UnstoredFile(String(failure), { cause: failure });
    }
  }

  /** Returns the file of an entry. */
  file(key: number): Promise<Blob | undefined> {
    return this.#db.get('files', key);
  }

  /** Stores the state of an entry, unless it was removed meanwhile. A file that it does not need any more is deleted. */
  async save(key: number, entry: StoredEntry): Promise<void> {
    const tx = this.#db.transaction(['entries', 'files'], 'readwrite');
    const entries = tx.objectStore('entries');
    if ((await entries.getKey(key)) !== undefined) await entries.put(entry, key);
    if (!entry.hasFile) await tx.objectStore('files').delete(key);
    await tx.done;
    this.#tell();
  }

  /** Removes entries with their files. */
  async remove(keys: readonly number[]): Promise<void> {
    const tx = this.#db.transaction(['entries', 'files'], 'readwrite', { durability: 'strict' });
    for (const key of keys) {
      void tx.objectStore('entries').delete(key);
      void tx.objectStore('files').delete(key);
    }
    await tx.done;
    this.#tell();
  }

  settings(): Promise<Settings | undefined> {
    return this.#db.get('settings', '');
  }

  async saveSettings(settings: Settings): Promise<void> {
    await this.#db.put('settings', settings, '');
    this.#tell();
  }

  #tell(): void {
    this.#channel.postMessage('');
  }

  close(): void {
    this.#channel.close();
    this.#db.close();
  }
}
