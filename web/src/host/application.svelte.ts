// An application in this page: chooses the host that answers its requests, and holds its state. All views of an application send their
// requests through this class.
//
//     view ──ask──▶ Application ──▶ the replica on this device, if it has received everything that this page has seen
//                                └─▶ otherwise the server of these pages: the origin or an edge

import { untrack } from 'svelte';
import type { FetchOptions } from '../../runtime/src/index';
import { revoke } from '../api/blobs';
import { bytesAt, type Fetch, inputPath, overHTTP, v2 } from '../api/client';
import { apps, Failure, pageToken, soon } from '../api/console';
import { pause, withRetry } from '../api/retry';
import { Token } from '../api/token';
import { loadWords } from '../i18n/i18n.svelte';
import type { Opening } from './device.svelte';
import type { EdgeStatus } from './edgeStatus.svelte';
import { isDeclined, isForeign, type OfflineApp, offlineApp, ownOfflineApps, setDeclined } from './offlineApps';
import type { Outbox } from './outbox.svelte';
import { pastedKeyFor, refuseKey } from './pastedKeys.svelte';
import type { Replica } from './replica.svelte';
import { edge, isUnknown, sessionState, waitForSession } from './session.svelte';
import { type Marked, type MarkKind, type Marks, marksOf, type SyncSummary } from './syncMarks';

/** An addition of pictures, as the frame of the pages shows it. */
export interface Addition {
  readonly isUnfinished: boolean;
  readonly needsPage: boolean; // pictures would be lost if the page were closed
  readonly left: number; // pictures that are not added yet
  isOpen: boolean; // the page shows the list
}

/** The last host that answered: a copy on this device, the origin over the network, or an edge. */
export type By = 'device' | 'origin' | 'edge';

interface SourcedAnswer {
  readonly answer: Response;
  readonly by: By;
}

const unmarked = marksOf([], []);
const mostAddresses = 600; // maximum number of pictures in memory: a few screens of a grid
const thumbnail = /^\/v2\/inputs\/([^/]+)\/thumbnail$/;
const mostEager = 500; // maximum number of pictures that the automatic replica of a demonstration downloads at once
const patience = 2000; // ms to wait until the replica can answer or has received a write that the origin answered

/** Whether the answer of a path has data with marks. The sync status and the bytes of pictures have none. */
const hasData = (path: string): boolean =>
  path.startsWith('/v2/') && !path.startsWith('/v2/sync/') && !/\/(thumbnail|rendition)$/.test(path);

export class Application {
  readonly id: string;
  /** The host that answered last. */
  by = $state<By>(edge() ? 'edge' : 'origin');
  /** The number of known changes, by this page or elsewhere. A view that depends on it reads its data again when it grows. */
  changes = $state(0);
  /** The replica on this device, open or opening; undefined without one. */
  copy = $state.raw<Replica>();
  /** The sync status of the edge of these pages; undefined at an origin. */
  edgeStatus = $state.raw<EdgeStatus>();
  /** The application's name, once the origin has withdrawn it from this device; before that empty. */
  purgedName = $state('');
  /** The addition of pictures to the application, once a page has begun to show it. */
  adding = $state.raw<Addition>();
  #contact = $state<string>(); // when the origin or the edge last answered this page
  #isUnreachable = $state(false); // whether the last request to the origin or the edge got no answer
  #seeking = false;
  #lastWrite = 0; // when the origin last answered a write of this page, in ms since 1970; 0: no write to wait for
  #settling = false;
  #opening: Promise<void> | undefined;
  readonly #end = new AbortController();
  #hasUnopenedCopy = $state(false); // whether a replica on this device is not open yet
  readonly #token: Token;
  #addresses = new Map<string, Promise<string>>(); // blob URLs by path; the most recently used one is last

  constructor(id: string) {
    this.id = id;
    this.#hasUnopenedCopy = !edge() && this.#storedCopy !== undefined;
    this.#token = new Token(() => pageToken(id, this.#storedCopy && soon()));
  }

  /** A signal that is aborted when this object is closed. */
  get ended(): AbortSignal {
    return this.#end.signal;
  }

  /** The entry of the application's copy on this device, unless it belongs to another account. */
  get #storedCopy(): OfflineApp | undefined {
    return isForeign(this.id) ? undefined : offlineApp(this.id);
  }

  /** The pending operations: of the replica on this device, or of the edge. */
  get outbox(): Outbox | undefined {
    return this.copy ?? this.edgeStatus;
  }

  /** The marks of unconfirmed changes and of conflicts. */
  get marks(): Marks {
    return this.outbox?.marks ?? unmarked;
  }

  /**
   * Returns the mark of a thing. It is confirmed if the origin has answered, and no pending operation and no conflict names it. It is undefined
   * if the origin has not answered, or while newer operations are not listed yet, because nothing is known of its changes then.
   */
  markOf(what: Marked, key: string): MarkKind | undefined {
    const isKnown = this.syncSummary.reached && (this.outbox?.areMarksCurrent ?? true);
    return this.marks[what].get(key) ?? (isKnown ? 'confirmed' : undefined);
  }

  /** Whether the replica on this device may have pending operations that it has not listed yet. */
  get hasUnreadOperations(): boolean {
    return this.copy ? this.copy.status === undefined && !this.copy.fresh : this.#hasUnopenedCopy;
  }

  /**
   * The numbers of pending operations, and whether the origin ever answered. Without a replica or an edge nothing is pending, and the
   * origin has every change that it answered.
   */
  get syncSummary(): SyncSummary {
    const { syncSummary } = this.outbox ?? {};
    const reached =
      !this.hasUnreadOperations && (syncSummary?.reached || (!this.edgeStatus && this.#contact !== undefined));
    return { queued: 0, sent: 0, conflicts: 0, ...syncSummary, reached };
  }

  /** Whether the origin is unreachable or the user has taken the replica offline, as far as this page knows. */
  get offline(): boolean {
    if (this.copy?.status) return this.copy.offline || (this.#isUnreachable && !this.copy.has(0));
    return this.#isUnreachable || (this.edgeStatus?.offline ?? false);
  }

  /** Whether the edge of these pages did not answer. */
  get isEdgeUnreachable(): boolean {
    return this.edgeStatus !== undefined && this.#isUnreachable;
  }

  /** When the origin last answered. */
  get contact(): string | undefined {
    return this.edgeStatus ? this.edgeStatus.status?.contact : (this.copy?.status?.contact ?? this.#contact);
  }

  /** Like `contact`. Before this page has had an answer, it is the time that a previous page has stored. */
  get lastContact(): string | undefined {
    return this.contact ?? this.copy?.contact;
  }

  /**
   * Answers a path under /v2 or /hosted, as fetch does. If no host can, it fails with a Failure of status 0. An effect that calls it runs
   * again when its arguments change, and not when the host does.
   */
  ask: Fetch = async (path, init) => {
    const { answer, by } = await untrack(() => this.#ask(path, init));
    if (by !== 'origin' && hasData(path)) this.outbox?.noteAnswer();
    return answer;
  };

  /** The calls of /v2 that change nothing. */
  readonly v2 = v2(this.ask);

  /** Like `v2`, but never by the replica: for data that a replica does not have. */
  readonly remote = v2(async (path, init) => (await untrack(() => this.#away(path, init))).answer);

  /** The calls of /v2 that change something. The sync mark of the change exists before the views read again. */
  readonly write = v2((path, init) => this.#send(path, init));

  async #ask(path: string, init?: FetchOptions): Promise<SourcedAnswer> {
    const offlineCopy = this.#storedCopy;
    if (offlineCopy && !this.copy) await waitForSession();
    const alone = this.copy
      ? this.copy.isOfflineByChoice || this.#isUnreachable
      : offlineCopy && (offlineCopy.offline || isUnknown());
    if (alone && !this.copy?.device.client) await this.begin(); // opening a stored replica takes a moment
    if (this.copy && this.#answers(this.copy, path, init)) {
      const local = await this.#askReplica(this.copy, path, init);
      const picture = local.answer.status === 404 ? await this.#picture(this.copy, path) : undefined;
      if (picture) return { answer: picture, by: 'device' };
      if (this.copy?.offline || !(await isUnknownPath(local.answer, path))) return local;
    }
    try {
      return await this.#away(path, init);
    } catch (failure) {
      if (!(failure instanceof Failure && failure.status === 0)) throw failure;
      this.#noteUnreachable();
      await this.begin();
      if (!this.copy?.device.client || !this.copy.isComplete) throw failure;
      return this.#askReplica(this.copy, path, init);
    }
  }

  async #send(path: string, init?: FetchOptions): Promise<Response> {
    let isLocal = false; // whether the replica answered
    try {
      const answered = await untrack(() => this.#ask(path, init));
      isLocal = answered.by === 'device';
      return answered.answer;
    } finally {
      const [copy, before] = [this.copy, this.changes];
      if (isLocal) await copy?.refresh();
      else if (this.edgeStatus) await this.edgeStatus.refresh();
      else {
        this.#lastWrite = Date.now();
        if (copy?.status?.as_of && !copy.offline) await this.#waitForLastWrite(copy);
      }
      if (this.changes === before) this.changes++; // otherwise the readers have been notified since the write
      if (init?.method === 'POST' && path === '/v2/inputs') void this.#settle();
    }
  }

  /** Increments `changes` each time added pictures have been analysed, until all of them are. */
  async #settle(): Promise<void> {
    if (this.#settling) return;
    this.#settling = true;
    try {
      for (let left = Number.POSITIVE_INFINITY; left > 0; await new Promise((resolve) => setTimeout(resolve, 500))) {
        const { counts } = await this.v2.GET('/inputs/status');
        if (counts.to_process < left) this.changes++;
        left = counts.to_process;
      }
    } catch {
      // the next call of a view reports the failure
    }
    this.#settling = false;
  }

  /**
   * Returns the blob URL of the picture at a path: "/v2/inputs/ID/thumbnail", "/hosted/NAME". When more than 600 pictures are in memory,
   * the URL of the least recently requested one is revoked.
   */
  address(path: string): Promise<string> {
    const cached = this.#addresses.get(path);
    if (cached) this.#addresses.delete(path);
    const address = cached ?? this.#load(path);
    this.#addresses.set(path, address);
    for (const [oldest, one] of this.#addresses) {
      if (this.#addresses.size <= mostAddresses) break;
      this.#addresses.delete(oldest);
      void one.then(revoke, () => {});
    }
    return address;
  }

  /** Returns the blob URL of the thumbnail of an input. */
  thumbnail = (id: string): Promise<string> => this.address(inputPath(id, 'thumbnail'));

  async #load(path: string): Promise<string> {
    try {
      return URL.createObjectURL(await bytesAt(this.ask, path));
    } catch (failure) {
      this.#addresses.delete(path); // so that the next call tries again
      throw failure;
    }
  }

  /** Whether the replica answers a call: it has received what this page has seen, or no other host can answer. */
  #answers(copy: Replica, path: string, init?: FetchOptions): boolean {
    if (!copy.device.client || copy.status?.phase === 'purged') return false;
    if (copy.isOfflineByChoice) return true;
    if (copy.isComplete && (copy.offline || (this.#isUnreachable && !copy.has(0)))) return true; // no other host can answer
    return copy.creates(path) || (copy.has(this.#lastWrite) && (copy.offline || !fetches(path, init)));
  }

  async #askReplica(copy: Replica, path: string, init?: FetchOptions): Promise<SourcedAnswer> {
    const answer = await copy.device.ask(path, init);
    this.by = 'device';
    return { answer, by: 'device' };
  }

  /**
   * Returns the picture itself for the path of a thumbnail, since a replica has thumbnails only of pictures that were added here. It
   * returns undefined if the picture is not stored here.
   */
  #picture(copy: Replica, path: string): Promise<Response | undefined> | undefined {
    const id = thumbnail.exec(path)?.[1];
    return id && (copy.app.eager || this.offline) ? copy.pictureOf(decodeURIComponent(id)) : undefined;
  }

  async #away(path: string, init?: FetchOptions): Promise<SourcedAnswer> {
    await waitForSession(); // the session reports whether the server is an edge, which needs other credentials
    const pastedKey = pastedKeyFor(this.id)?.authorization;
    const authorizationHeader = new Headers(init?.headers).get('Authorization') ?? pastedKey;
    if (!authorizationHeader && edge()?.open === false) throw new Failure(401); // the user has removed the pasted key
    const token = authorizationHeader ? '' : await this.#token.get();
    let answer = await fetchAuthorized(path, init, authorizationHeader ?? `Bearer ${token}`);
    if (answer.status === 401 && token) {
      this.#token.refuse(token);
      answer = await fetchAuthorized(path, init, `Bearer ${await this.#token.get()}`);
    } else if (answer.status === 401 && authorizationHeader === pastedKey) refuseKey(this.id); // the pasted key is no longer valid
    const by = edge() && !this.edgeStatus?.isLocal ? 'edge' : 'origin'; // an edge server without an origin counts as an origin
    this.by = by;
    const now = new Date();
    this.#isUnreachable = false;
    if (!this.#contact || now.getTime() - Date.parse(this.#contact) > 1000) this.#contact = now.toISOString();
    if (!this.#opening && !this.ended.aborted) void this.begin(); // the earlier attempt failed
    return { answer, by };
  }

  /** Waits up to 2 seconds until this browser's replica can answer: changes of a previous page may exist only in the replica. */
  async waitForCopy(): Promise<void> {
    if (!this.#storedCopy) return;
    const canAnswer = (copy = this.copy) => copy?.device.client && (copy.has(0) || (copy.isComplete && copy.offline));
    for (const startedAt = performance.now(); !canAnswer() && performance.now() - startedAt < patience; )
      await new Promise((resolve) => setTimeout(resolve, 50));
  }

  /**
   * Notes that the origin did not answer, and asks it every 5 seconds until it answers. It does not ask while a replica or the edge's
   * status is known, since these are updated anyway.
   */
  #noteUnreachable(): void {
    this.#isUnreachable = true;
    if (!this.#seeking) void this.#seek();
  }

  async #seek(): Promise<void> {
    this.#seeking = true;
    while (this.#isUnreachable && !this.ended.aborted) {
      await new Promise((resolve) => setTimeout(resolve, pause));
      if (this.copy?.status && !this.copy.offline) this.#isUnreachable = false;
      if (this.outbox?.status || document.visibilityState === 'hidden' || !navigator.onLine || !this.#isUnreachable)
        continue;
      const failure = await this.remote.GET('/inputs/status').catch((failure) => failure);
      if (!this.#isUnreachable) this.changes++;
      else if (!(failure instanceof Failure && failure.status === 0)) this.#isUnreachable = false; // it answers
    }
    this.#seeking = false;
  }

  /** Waits up to 2 seconds until the replica has received this page's last write at the origin. Afterwards the replica answers again. */
  async #waitForLastWrite(copy: Replica): Promise<void> {
    for (const startedAt = performance.now(); !copy.has(this.#lastWrite) && performance.now() - startedAt < patience; )
      await new Promise((resolve) => setTimeout(resolve, 50));
    this.#lastWrite = 0;
  }

  /** Waits until the origin has an input that was written here. It returns false if the origin becomes unreachable before. */
  async waitUntilSent(input: string): Promise<boolean> {
    for (; this.marks.inputs.has(input); await new Promise((resolve) => setTimeout(resolve, 250)))
      if (this.offline || this.ended.aborted) return false;
    return !this.offline;
  }

  /**
   * Opens this browser's replica of the application. In a demonstration it creates a replica if there is none. At an edge it follows the
   * edge's status instead. It does so once: later calls return the same promise.
   */
  begin(): Promise<void> {
    this.#opening ??= this.#begin().catch(() => {
      this.#opening = undefined; // so that a later call tries again
    });
    return this.#opening;
  }

  async #begin(): Promise<void> {
    await waitForSession();
    if (edge()) {
      const { EdgeStatus } = await import('./edgeStatus.svelte');
      await loadWords();
      if (this.ended.aborted) return;
      this.edgeStatus = new EdgeStatus(this.ask, () => this.changes++);
      void this.edgeStatus.start();
      return;
    }
    const offlineCopy = this.#storedCopy;
    // If the server answers, it decides who owns the replica. Offline, the account of the last session here does, until it signs out.
    const isOwn = ownOfflineApps().some(({ id }) => id === this.id);
    if (isOwn && offlineCopy && isUnknown()) {
      this.#noteUnreachable();
      return this.join(offlineCopy);
    }
    await this.#token.get().catch((failure) => {
      if (!(isOwn && failure instanceof Failure && failure.status === 0)) throw failure;
    });
    if (offlineCopy) return this.join(offlineCopy);
    const session = sessionState();
    if (session.is !== 'known' || !session.session.demo || isDeclined(this.id)) return;
    const app = (await apps()).find(({ id }) => id === this.id);
    if (!app || app.local_only) return;
    await (await import('./device.svelte')).Device.idle();
    const { id, name, language, inputs } = app;
    await this.join({ id, name, language, ...(inputs <= mostEager && { eager: true }) }, { lasting: true });
  }

  /** Opens a replica on this device and records it. With `lasting` it does so only if the replica's store outlives the page. */
  async join(app: OfflineApp, { lasting = false } = {}): Promise<void> {
    if (this.copy || isForeign(this.id)) return;
    const { Replica } = await import('./replica.svelte');
    if (this.copy) return;
    const copy = new Replica(app);
    this.copy = copy;
    this.#hasUnopenedCopy = false;
    this.purgedName = '';
    copy.onprogress = () => {
      if (copy.status?.phase === 'purged') void this.remove({ purged: true });
      else this.changes++;
    };
    copy.device.onend = () => void this.#openAgain(copy, lasting);
    if (await copy.open()) await this.#rememberCopy(copy, lasting);
    else void this.#openAgain(copy, lasting);
  }

  /** Opens a replica again that failed or ended because the origin was unreachable, once the origin is reachable. */
  async #openAgain(copy: Replica, lasting: boolean): Promise<void> {
    if (!(await copy.openWhenReachable(() => this.copy === copy))) return;
    await this.#rememberCopy(copy, lasting);
    this.changes++;
  }

  /** Records an open replica on this device. With `lasting` it closes the replica instead if its store does not outlive the page. */
  async #rememberCopy(copy: Replica, lasting: boolean): Promise<void> {
    const { state } = copy.device;
    if (lasting && !(state.is === 'ready' && state.isPersistent)) return this.#leave(copy);
    const { requestPersistence: persist, storePages: store } = await import('./offline.svelte');
    copy.remember();
    persist();
    this.#opening ??= Promise.resolve();
    void store(); // it needs the origin, so no caller waits for it
  }

  /** Opens a replica again that did not open. */
  async openAgain(how: Opening = {}): Promise<void> {
    const copy = this.copy;
    if (!copy || !(await copy.open(how))) return;
    await this.#rememberCopy(copy, false);
    this.changes++;
  }

  /**
   * Replaces the replica by a new one from the origin. Operations that the origin does not have are lost. It rejects, and the replica stays,
   * if the origin is unreachable or another tab has the replica open.
   */
  async replaceCopy(): Promise<void> {
    const copy = this.copy;
    if (!copy) return;
    await this.remote.GET('/inputs/status');
    await this.#leave(copy);
    const { id, name, language, account, eager } = copy.app;
    const app = { id, name, language, ...(account && { account }), ...(eager && { eager }) };
    try {
      await (await import('./replica.svelte')).removeReplica(id);
    } catch (failure) {
      await this.join(this.#storedCopy ?? copy.app);
      throw failure;
    }
    await this.join(app);
    this.changes++;
  }

  async #leave(copy: Replica): Promise<void> {
    if (this.copy === copy) this.copy = undefined;
    await copy.close();
  }

  /**
   * Deletes the replica from this device, with its pending operations. `purged`: because the origin has withdrawn the application.
   * Otherwise a demonstration does not create the replica again by itself.
   */
  async remove({ purged = false } = {}): Promise<void> {
    const copy = this.copy;
    if (!copy) return;
    const session = sessionState();
    await this.#leave(copy);
    await (await import('./replica.svelte')).removeReplica(this.id);
    if (purged) this.purgedName = copy.app.name;
    else if (session.is === 'known' && session.session.demo) setDeclined(this.id);
    this.changes++;
  }

  /** Closes the replica, which stays on this device, and revokes the blob URLs. */
  async close(): Promise<void> {
    if (this.copy) await this.#leave(this.copy);
    this.#end.abort();
    this.edgeStatus?.close();
    for (const address of this.#addresses.values()) void address.then(revoke, () => {});
    this.#addresses.clear();
  }
}

/** Sends a request to the server of these pages. It rejects with a Failure of status 0 if the server is unreachable. */
async function fetchAuthorized(path: string, init: FetchOptions | undefined, authorization: string): Promise<Response> {
  const headers = new Headers(init?.headers);
  headers.set('Authorization', authorization);
  if (edge()) headers.set('X-Sightline-Page', '1'); // a page's reads do not count as calls of the key
  const reach = () =>
    overHTTP(fetch)(path, { ...init, headers }).catch((failure) => {
      throw failure instanceof TypeError ? new Failure(0) : failure;
    });
  return withRetry(reach, init?.method); // a page with many writes or pictures can exceed the rate limit of a key or a network
}

/** Whether the host that answers a call must download a picture from another server. A browser usually may not do so. */
function fetches(path: string, init?: FetchOptions): boolean {
  if (init?.method !== 'POST' || init.files || typeof init.body !== 'string' || path.startsWith('/v2/sync'))
    return false;
  return /"url":\s*"https?:/.test(init.body);
}

/** Whether the replica does not know the path, as with another version than its origin's. A missing thumbnail counts too. */
async function isUnknownPath(answer: Response, path: string): Promise<boolean> {
  if (answer.status !== 404) return false;
  if (thumbnail.test(path)) return true; // the origin has one
  const { status } = await answer
    .clone()
    .json()
    .catch(() => ({}));
  return status?.details === 'Check the url of your request.';
}

const open = new Map<string, Application>();

/** Returns the application with an id, and begins it at the first call. All views share the object until `closeApplications`. */
export function application(id: string): Application {
  let one = open.get(id);
  if (!one) {
    one = new Application(id);
    open.set(id, one);
    void one.begin();
  }
  return one;
}

/** Closes all applications, for example when another user signs in. */
export async function closeApplications(): Promise<void> {
  const all = [...open.values()];
  open.clear();
  await Promise.all(all.map((one) => one.close()));
}
