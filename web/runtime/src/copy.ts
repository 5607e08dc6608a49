// A copy of an origin's application: sends the requests of its machine by fetch, as sync/README.md specifies.
//
//     machine, in the instance ──effects──▶ Copy ──fetch──▶ origin
//        ▲                                   │  each piece of an answer is handled before the next is read
//        └──────────────events───────────────┘
//
// It repeats and stores nothing: the machine knows what must be repeated, and its store has it.

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

/** The application of a copy and its settings, in a form that can be sent between threads. */
export interface CopyStart {
  origin: string; // its address, without a slash at its end
  app: string; // 32 hex digits
  name?: string; // of this copy, for people
  pictures: 'lazy' | 'eager';
  /** It begins without asking the origin, until it is told to. */
  offline?: boolean;
}

/** The status of a copy, as `GET /v2/sync/status` returns it. Times are RFC 3339, and absent before the first event. */
export interface CopyStatus {
  app_id: string;
  origin: string;
  phase: Phase;
  site: number;
  /** The last pulled entry of the origin's log. */
  cursor: number;
  /** The last entry that the origin is known to have. */
  head: number;
  /** When the origin last answered. */
  contact?: string;
  /** When the origin last had no later entries. */
  as_of?: string;
  /** Own operations that are durable here and, as far as is known, nowhere else. */
  queued: number;
  /** Own operations that the origin says it has, and that have not come back in its log. */
  sent: number;
  /** Own operations that did not do what they say, until a person has agreed. */
  conflicts: number;
  denied?: string;
  problem?: string;
  retry?: string;
}

export type { Digest };

export interface CopyOptions extends CopyStart {
  credential: Credential;
  /** Called when the status of the copy has changed. */
  onChange: (status: CopyStatus, offline: boolean) => void;
}

/** The services of the engine: its instance, and its end. */
export interface Machine {
  /** Passes an event to the machine, and returns the result. An exception ends the instance. */
  tell: (event: Uint8Array) => Uint8Array;
  /** Asks the instance where the copy stands. */
  status: () => CopyStatus;
  /** Called when the instance can no longer be used. */
  onFailure: (failure: unknown) => void;
  /** Called when the application is no longer for this copy to hold; `kept`: but for own operations that nobody else has. */
  onPurge: (why: string, kept: boolean) => void;
}

const pieceBytes = 64 << 10;
const pictureTime = 15_000; // ms that who asks for a picture waits for the origin
const longestTimer = 2 ** 31 - 1;

const pause = 100; // ms between two notifications of watchers

/** The copy. It begins again with each instance of the module. */
export class Copy {
  #o: CopyOptions;
  #machine: Machine;
  #requests = new Map<number, AbortController>();
  #waits = new Map<string, Set<(error?: Error) => void>>(); // for pictures, by their hashes
  #timer: ReturnType<typeof setTimeout> | undefined;
  #syncStatus: SyncStatus | undefined;
  #lastIssued: number | undefined; // own operations at the last notification
  #last: CopyStatus;
  #quiet: ReturnType<typeof setTimeout> | undefined; // no notification until then
  #hasChanges = false; // since the last notification
  #offline: boolean; // as a person wants it
  #isBrowserOffline = false; // as the browser says
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
      site: 0,
      cursor: 0,
      head: 0,
      queued: 0,
      sent: 0,
      conflicts: 0,
    };
    this.#listen();
  }

  /** Begins with an instance that has just been opened. */
  begin(): void {
    this.#giveUp();
    if (this.#offline || this.#isBrowserOffline) this.#step({ kind: 'offline' });
    this.#step({ kind: 'begin' });
    this.#tell();
  }

  /** Something may have been written here: it is pushed, and watchers are notified even if it cannot be. */
  noteLocalChange(): void {
    this.#step({ kind: 'local' });
    if (this.#syncStatus?.issued !== this.#lastIssued) this.#tell();
  }

  /** Another caller has changed something: likewise, and watchers are always notified. */
  noteWrite(): void {
    this.noteLocalChange();
    this.#tell();
  }

  /** Makes sure that a picture is stored here. It rejects if it cannot be had now. */
  need(blob: Uint8Array): Promise<void> {
    const name = hex(blob);
    const waits = this.#waits.get(name) ?? new Set();
    this.#waits.set(name, waits);
    return new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => done(new Error('the origin did not send the picture in time')), pictureTime);
      const done = (error?: Error) => {
        clearTimeout(timer);
        waits.delete(done);
        if (!waits.size) this.#waits.delete(name);
        if (error) reject(error);
        else resolve();
      };
      waits.add(done);
      if (this.#ended || this.#offline || this.#isBrowserOffline) return done(new Error('cannot reach the origin'));
      this.#step({ kind: 'need', blob });
    });
  }

  /** Asks nothing of the origin for as long as a person wants it so. */
  offline(on: boolean): void {
    this.#offline = on;
    this.#connect();
    this.#tell();
  }

  /** The current status. */
  status(): CopyStatus {
    if (!this.#ended)
      try {
        this.#last = this.#machine.status();
      } catch (failure) {
        this.#machine.onFailure(failure);
      }
    return { ...this.#last, ...(this.#ended && this.#syncStatus && { phase: this.#syncStatus.phase }) };
  }

  /** Ends it in order: requests under way are given up. */
  stop(): void {
    if (this.#ended) return;
    this.#step({ kind: 'stop' });
    this.#end();
  }

  #end(): void {
    this.#ended = true;
    this.#hasChanges = true;
    this.#say();
    clearTimeout(this.#quiet);
    this.#unlisten();
    this.#giveUp();
    for (const waits of this.#waits.values()) for (const done of [...waits]) done(new Error('the replica was closed'));
  }

  #giveUp(): void {
    clearTimeout(this.#timer);
    const all = [...this.#requests.values()];
    this.#requests.clear();
    for (const stop of all) stop.abort();
  }

  /** Follows the browser's events about the network, which do not concern servers on this device. */
  #listen(): void {
    const { hostname } = new URL(this.#o.origin);
    if (typeof navigator === 'undefined' || !('onLine' in navigator) || typeof addEventListener !== 'function') return;
    if (/^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)) return;
    this.#isBrowserOffline = !navigator.onLine;
    const heed = () => {
      this.#isBrowserOffline = !navigator.onLine;
      this.#connect();
    };
    for (const name of ['online', 'offline']) addEventListener(name, heed);
    this.#unlisten = () => {
      for (const name of ['online', 'offline']) removeEventListener(name, heed);
    };
  }

  #connect(): void {
    this.#step({ kind: this.#offline || this.#isBrowserOffline ? 'offline' : 'online' });
  }

  /** Notifies watchers, now or soon: fast changes are reported a few times a second. */
  #tell(): void {
    this.#lastIssued = this.#syncStatus?.issued;
    this.#hasChanges = true;
    if (this.#quiet === undefined) this.#say();
  }

  #say(): void {
    clearTimeout(this.#quiet);
    this.#quiet = undefined;
    if (!this.#hasChanges) return;
    this.#hasChanges = false;
    this.#quiet = setTimeout(() => this.#say(), pause);
    (this.#quiet as { unref?: () => void }).unref?.();
    this.#o.onChange(this.status(), this.#offline);
  }

  /** Tells the machine an event and does what it wants. */
  #step(event: Event): void {
    if (this.#ended) return;
    let effects: Effect[];
    try {
      const synced = decodeSyncResult(this.#machine.tell(encodeEvent(event)));
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
        for (const done of [...(this.#waits.get(hex(e.blob)) ?? [])]) done(e.error);
        break;
      case 'changed':
        this.#tell();
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

  /** Makes a request and hands on its answer, piece by piece. */
  async #ask(a: Ask): Promise<void> {
    const stop = new AbortController();
    this.#requests.set(a.id, stop);
    /** Hands on a piece; false: nobody wants more. */
    const hand = (piece: Piece) => {
      if (this.#requests.get(a.id) !== stop) return false;
      if (!piece.more) this.#requests.delete(a.id);
      this.#step({ kind: 'answer', id: a.id, ...piece });
      return this.#requests.get(a.id) === stop;
    };
    try {
      const response = await send(this.#o.origin, this.#o.credential, a, stop);
      let first: Piece = { status: response.status, header: [...response.headers] };
      const reader = response.body?.getReader();
      for (let r = await reader?.read(); r && !r.done; r = await reader?.read())
        for (let at = 0; at < r.value.length; at += pieceBytes) {
          if (!hand({ ...first, body: r.value.subarray(at, at + pieceBytes), more: true })) return;
          first = {};
          await turn();
        }
      hand(first);
    } catch (failure) {
      hand({ error: (failure as Error).message });
    } finally {
      stop.abort();
    }
  }
}

const turns: (() => void)[] = [];
let turning: MessageChannel | undefined;

/** The next turn of this thread: others come in between, whatever has come already. */
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
