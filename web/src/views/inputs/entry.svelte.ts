// One picture of an addition: what it is added from, and its progress.
import type { Schemas } from '../../api/client';
import type { Source } from './sources';

export type State = 'waiting' | 'reading' | 'stored' | 'skipped' | 'failed';

/** The relation of a stored picture to another: the same bytes, the same picture, or a similar one. */
export interface Twin {
  readonly tier: Schemas['Tier'];
  readonly id: string;
}

/** Why a picture was not added. */
export interface Failed {
  readonly code: number; // status code of the host, or 0
  readonly description: string;
  readonly details: string;
}

/** Returns a failure that the page itself has found. */
export const problem = (description: string): Failed => ({ code: 0, description, details: '' });

/** An entry as the queue stores it. Its file is stored under the same key. */
export interface StoredEntry {
  readonly source: Omit<Source, 'blob'>;
  readonly is: Exclude<State, 'reading'>;
  readonly size: number; // bytes of the file
  readonly hasFile: boolean; // whether its file is stored
  readonly isSent: boolean; // whether a call with the picture has begun
  readonly isCleared: boolean; // whether it left the list before the origin had the picture
  readonly id: string;
  readonly hash: string;
  readonly isOtherId: boolean;
  readonly failure: Failed | undefined;
  readonly place: { readonly latitude: number; readonly longitude: number } | undefined;
  readonly isPlaceWritten: boolean;
  readonly twin: Twin | undefined;
}

export class Entry {
  readonly source: Omit<Source, 'blob'>;
  readonly size: number; // bytes of the file; 0: added from a URL
  key: number | undefined; // its key in the stored queue; undefined: it exists in this page only
  blob: Blob | undefined; // the file, if it is not in the stored queue
  hasFile = false; // whether its file is in the stored queue
  isSent = false; // a call with the picture has begun
  isCleared = false; // it left the list before the origin had the picture
  isRepeated = false; // an earlier call, whose answer was lost, may have added the picture
  is = $state<State>('waiting');
  id = $state('');
  failure = $state.raw<Failed>();
  place = $state.raw<StoredEntry['place']>(); // place in the metadata of the file
  twin = $state.raw<Twin>();
  isPlaceWritten = false; // the stored input has the place
  hash = ''; // SHA-256 of the file
  isOtherId = $state(false); // its ID belongs to another picture, so it has another one

  constructor({ blob, ...source }: Source) {
    this.source = source;
    this.blob = blob;
    this.size = blob?.size ?? 0;
    const { problem: wrong, unread } = source;
    if (this.isRepeatable) return;
    [this.is, this.failure] = ['failed', problem(wrong ?? (typeof unread === 'object' ? unread.why : (unread ?? '')))];
  }

  /** Whether the picture is a file, in the stored queue or in this page. */
  get isFile(): boolean {
    return this.blob !== undefined || this.size > 0;
  }

  /** Whether another attempt can succeed. */
  get isRepeatable(): boolean {
    return this.source.problem === undefined && !this.source.unread;
  }

  /** Returns the entry of the stored queue with a key. */
  static of(key: number, stored: StoredEntry): Entry {
    const entry = new Entry(stored.source);
    entry.key = key;
    return entry.take(stored);
  }

  /** Takes the state of the stored entry. */
  take({ source: _, ...state }: StoredEntry): this {
    return Object.assign(this, state);
  }

  /** Returns what the queue stores. An entry that is being sent waits again after a crash. */
  get stored(): StoredEntry {
    const { source, size, hasFile, isSent, isCleared, id, hash, isOtherId, failure, place, isPlaceWritten, twin } =
      this;
    const is = this.is === 'reading' ? 'waiting' : this.is;
    return { source, is, size, hasFile, isSent, isCleared, id, hash, isOtherId, failure, place, isPlaceWritten, twin };
  }
}
