// The replica of an origin's application: sends the requests of its state machine by fetch, as sync/README.md specifies.
//
//     machine, in the instance ──effects──▶ Copy ──fetch──▶ origin
//        ▲                                   │  each piece of an answer is handled before the next is read
//        └──────────────events───────────────┘
//
// Copy retries nothing and stores nothing. The machine decides about retries, and the store has the machine's state.

import type { Credential } from './credential.ts';
import { send } from './origin.ts';
import {
  type Ask,
  type Digest,
  decodeSyncResult,
  type Effect,
  type Event,
  encodeEvent,
  hex,
  type Phase,
  type Piece,
  type SyncStatus,
} from './sync.ts';

/** The application of a replica and its settings, in a form that can be sent between threads. */
export interface CopyStart {
  origin: string; // URL of the origin, without a slash at the end
  app: string; // 32 hex digits
  name?: string; // name of this replica, for display
  device?: string; // 32 hex digits by which the origin remembers the contacts of this replica
  pictures: 'lazy' | 'eager';
  /** Whether the replica starts offline. It then sends nothing to the origin until `offline(false)`. */
  offline?: boolean;
}

/** The status of a replica, as `GET /v2/sync/status` returns it. Times are RFC 3339, and absent before the first event. */
export interface CopyStatus {
  app_id: string;
  origin: string;
  phase: Phase;
  /** Writer of the local operations: a text. Absent before the first one. */
  writer?: string;
  /** The last pulled entry of the origin's log. */
  cursor: number;
  /** The last known entry of the origin's log. */
  head: number;
  /** When the origin last answered. */
  contact?: string;
  /** When this replica last had all entries of the origin. */
  as_of?: string;
  /** Number of local operations that are stored here and that the origin has not acknowledged. */
  queued: number;
  /** Number of local operations that the origin has acknowledged and that have not come back in its log. */
  sent: number;
  /** Number of local operations that had another effect than intended and that the user has not dismissed. */
  conflicts: number;
  denied?: string;
  problem?: string;
  /** Limit of the origin because of which local operations cannot be sent now; `Calls`: the account has no calls left. */
  limit?: string;
  retry?: string;
}

export type { Digest };

export interface CopyOptions extends CopyStart {
  credential: Credential;
  /** Called when the status of the copy has changed. */
  onChange: (status: CopyStatus, offline: boolean) => void;
}

/** The services that the engine provides to Copy: calls of the instance, and callbacks for its end. */
export interface Machine {
  /** Passes an event to the machine, and returns the result. An exception ends the instance. */
  handleEvent: (event: Uint8Array) => Uint8Array;
  /** Reads the replica's status from the instance. */
  status: () => CopyStatus;
  /** Called when the instance can no longer be used. */
  onFailure: (failure: unknown) => void;
  /**
   * Called when the origin withdraws the application from this replica. `keepStore`: the store must not be emptied, since it has local
   * operations that the origin does not have.
   */
  onPurge: (reason: string, keepStore: boolean) => void;
}

const pieceBytes = 64 << 10;
const pictureTime = 15_000; // ms that `need` waits for the origin
const longestTimer = 2 ** 31 - 1; // ms, the maximum of setTimeout

const pause = 100; // ms between two notifications of watchers

/** Drives the sync of a replica. The engine calls `begin` for each new instance of the module. */
export class Copy {
  #o: CopyOptions;
  #machine: Machine;
  #requests = new Map<number, AbortController>();
  #waiters = new Map<string, Set<(error?: Error) => void>>(); // callers that wait for a picture, by its hash in hex
  #timer: ReturnType<typeof setTimeout> | undefined;
  #syncStatus: SyncStatus | undefined;
  #lastIssued: number | undefined; // number of issued local operations at the last notification
  #last: CopyStatus;
  #quiet: ReturnType<typeof setTimeout> | undefined; // while it runs, watchers are not notified
  #hasChanges = false; // whether the status may have changed since the last notification
  #offline: boolean; // whether the user has taken the replica offline
  #isBrowserOffline = false; // whether the browser reports no network
  #unlisten = () => {};
  #ended = false;

  constructor(o: CopyOptions, machine: Machine) {
    this.#o = o;
    this.#machine = machine;
    this.#offline = o.offline ?? false;
    const { origin, app } = o;
    this.#last = {
      app_id: app,
      origin,
      phase: 'stopped',
      cursor: 0,
      head: 0,
      queued: 0,
      sent: 0,
      conflicts: 0,
    };
    this.#listen();
  }

  /** Starts the machine in an instance that has just been opened. Requests of the previous instance are aborted. */
  begin(): void {
    this.#giveUp();
    if (this.#offline || this.#isBrowserOffline) this.#step({ kind: 'offline' });
    this.#step({ kind: 'begin' });
    this.#scheduleNotification();
  }

  /** Reports to the machine that this replica may have new operations to push. Watchers are notified if it has, also when offline. */
  noteLocalChange(): void {
    this.#step({ kind: 'local' });
    if (this.#syncStatus?.issued !== this.#lastIssued) this.#scheduleNotification();
  }

  /** Like noteLocalChange, after a write request. Watchers are always notified. */
  noteWrite(): void {
    this.noteLocalChange();
    this.#scheduleNotification();
  }

  /** Fetches the picture with a hash from the origin if it is not stored here. It rejects if the origin does not send it in time. */
  need(blob: Uint8Array): Promise<void> {
    const name = hex(blob);
    const waiters = this.#waiters.get(name) ?? new Set();
    this.#waiters.set(name, waiters);
    return new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => done(new Error('the origin did not send the picture in time')), pictureTime);
      const done = (error?: Error) => {
        clearTimeout(timer);
        waiters.delete(done);
        if (!waiters.size) this.#waiters.delete(name);
        if (error) reject(error);
        else resolve();
      };
      waiters.add(done);
      if (this.#ended || this.#offline || this.#isBrowserOffline) return done(new Error('cannot reach the origin'));
      this.#step({ kind: 'need', blob });
    });
  }

  /** Takes the replica offline or online by the user's choice. Offline it sends nothing to the origin. */
  offline(on: boolean): void {
    this.#offline = on;
    this.#connect();
    this.#scheduleNotification();
  }

  /** Returns the current status, or the last one if the replica has ended. */
  status(): CopyStatus {
    if (!this.#ended)
      try {
        this.#last = this.#machine.status();
      } catch (failure) {
        this.#machine.onFailure(failure);
      }
    return { ...this.#last, ...(this.#ended && this.#syncStatus && { phase: this.#syncStatus.phase }) };
  }

  /** Stops the machine and ends the replica: requests in progress are aborted, and callers of `need` get an error. */
  stop(): void {
    if (this.#ended) return;
    this.#step({ kind: 'stop' });
    this.#end();
  }

  #end(): void {
    this.#ended = true;
    this.#hasChanges = true;
    this.#notify();
    clearTimeout(this.#quiet);
    this.#unlisten();
    this.#giveUp();
    for (const waiters of this.#waiters.values())
      for (const done of [...waiters]) done(new Error('the replica was closed'));
  }

  #giveUp(): void {
    clearTimeout(this.#timer);
    const all = [...this.#requests.values()];
    this.#requests.clear();
    for (const stop of all) stop.abort();
  }

  /** Follows the browser's online and offline events, unless the origin runs on this device. */
  #listen(): void {
    const { hostname } = new URL(this.#o.origin);
    if (typeof navigator === 'undefined' || !('onLine' in navigator) || typeof addEventListener !== 'function') return;
    if (/^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)) return;
    this.#isBrowserOffline = !navigator.onLine;
    const onNetworkChange = () => {
      this.#isBrowserOffline = !navigator.onLine;
      this.#connect();
    };
    for (const name of ['online', 'offline']) addEventListener(name, onNetworkChange);
    this.#unlisten = () => {
      for (const name of ['online', 'offline']) removeEventListener(name, onNetworkChange);
    };
  }

  #connect(): void {
    this.#step({ kind: this.#offline || this.#isBrowserOffline ? 'offline' : 'online' });
  }

  /** Notifies watchers now, or within `pause` if the last notification was just sent. */
  #scheduleNotification(): void {
    this.#lastIssued = this.#syncStatus?.issued;
    this.#hasChanges = true;
    if (this.#quiet === undefined) this.#notify();
  }

  #notify(): void {
    clearTimeout(this.#quiet);
    this.#quiet = undefined;
    if (!this.#hasChanges) return;
    this.#hasChanges = false;
    this.#quiet = setTimeout(() => this.#notify(), pause);
    (this.#quiet as { unref?: () => void }).unref?.();
    this.#o.onChange(this.status(), this.#offline);
  }

  /** Passes an event to the machine and executes the returned effects. */
  #step(event: Event): void {
    if (this.#ended) return;
    let effects: Effect[];
    try {
      const synced = decodeSyncResult(this.#machine.handleEvent(encodeEvent(event)));
      if (synced.error) throw synced.error;
      this.#syncStatus = synced.status;
      effects = synced.effects;
    } catch (failure) {
      this.#giveUp();
      this.#machine.onFailure(failure);
      return;
    }
    for (const e of effects) this.#do(e);
  }

  #do(e: Effect): void {
    switch (e.kind) {
      case 'ask':
        void this.#ask(e);
        break;
      case 'cancel': {
        const stop = this.#requests.get(e.id);
        this.#requests.delete(e.id);
        stop?.abort();
        break;
      }
      case 'wake':
        this.#wake(e.at - Date.now());
        break;
      case 'got':
        for (const done of [...(this.#waiters.get(hex(e.blob)) ?? [])]) done(e.error);
        break;
      case 'changed':
        this.#scheduleNotification();
        break;
      case 'purge': {
        const { issued, folded } = this.#syncStatus ?? { issued: 0, folded: 0 };
        this.#end();
        this.#machine.onPurge(e.why, e.keepOutbox && issued > folded);
        break;
      }
    }
  }

  #wake(after: number): void {
    clearTimeout(this.#timer);
    const wake = () => this.#step({ kind: 'wake' });
    this.#timer = setTimeout(wake, Math.min(Math.max(after, 0), longestTimer));
    (this.#timer as { unref?: () => void }).unref?.();
  }

  /** Sends a request and passes the answer to the machine, piece by piece. */
  async #ask(a: Ask): Promise<void> {
    const stop = new AbortController();
    this.#requests.set(a.id, stop);
    /** Passes a piece to the machine. It returns false if the machine wants no more of this answer. */
    const passPiece = (piece: Piece) => {
      if (this.#requests.get(a.id) !== stop) return false;
      if (!piece.more) this.#requests.delete(a.id);
      this.#step({ kind: 'answer', id: a.id, ...piece });
      return this.#requests.get(a.id) === stop;
    };
    try {
      const response = await send(this.#o.origin, this.#o.credential, named(a, this.#o.device), stop);
      let first: Piece = { status: response.status, header: [...response.headers] };
      const reader = response.body?.getReader();
      for (let r = await reader?.read(); r && !r.done; r = await reader?.read())
        for (let at = 0; at < r.value.length; at += pieceBytes) {
          if (!passPiece({ ...first, body: r.value.subarray(at, at + pieceBytes), more: true })) return;
          first = {};
          await turn();
        }
      passPiece(first);
    } catch (failure) {
      passPiece({ error: (failure as Error).message });
    } finally {
      stop.abort();
    }
  }
}

/** Adds the name of the device to the requests that the origin remembers as its contacts. */
function named(a: Ask, device: string | undefined): Ask {
  if (!device || !/^\/v2\/sync\/(session|changes)$/.test(a.path)) return a;
  return { ...a, query: `${a.query ? `${a.query}&` : ''}device=page-${device}` };
}

const turns: (() => void)[] = [];
let turning: MessageChannel | undefined;

/** Resolves in a later turn of this thread's event loop, so that messages that have arrived are handled first. */
function turn(): Promise<void> {
  if (!turning) {
    turning = new MessageChannel();
    turning.port1.onmessage = () => turns.shift()?.();
    (turning.port1 as { unref?: () => void }).unref?.();
  }
  const { port2 } = turning;
  return new Promise((resolve) => {
    turns.push(resolve);
    port2.postMessage(null);
  });
}
