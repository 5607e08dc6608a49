// An application in this page: the host that answers for it, and its data. Every page of pictures sends its requests here, and only here.
//
//     page ──ask──▶ Application ──▶ the copy on this device, if there is one and it has all that the origin had
//                                └─▶ the origin before that and without a copy, or the edge of these pages

import { untrack } from 'svelte';
import type { Fetch } from './apiCall';
import { call } from './apiCall';
import { revoke } from './blobs';
import { apps, Failure, pageToken, soon } from './console';
import type { EdgeStatus } from './edgeStatus.svelte';
import { loadWords } from './i18n.svelte';
import { isDeclined, type OfflineApp, offlineApp, setDeclined } from './offlineApps';
import type { Outbox } from './outbox.svelte';
import { pastedKeyFor, refuseKey } from './pastedKeys.svelte';
import type { Replica } from './replica.svelte';
import { withRetry } from './retry';
import { edge, isUnknown, sessionState, waitForSession } from './session.svelte';
import type { MarkKind, Truth } from './syncMarks';
import { Token } from './token';

/** The last host that answered: a copy on this device, the origin over the network, or an edge. */
export type By = 'device' | 'origin' | 'edge';

interface SourcedAnswer {
  readonly answer: Response;
  readonly by: By;
}

const unmarked: Record<'inputs' | 'models' | 'concepts', ReadonlyMap<string, MarkKind>> = {
  inputs: new Map(),
  models: new Map(),
  concepts: new Map(),
};
const mostAddresses = 600; // pictures that are in memory at once: some screens of a grid
const thumbnail = /^(\/v2\/inputs\/[^/]+)\/thumbnail$/;
const mostEager = 500; // pictures that a copy made by itself brings at once
const patience = 2000; // ms that a write of the origin's own is waited for to come to the copy
const pause = 5000; // ms before a copy is opened again that could not be for want of the origin, and before that is asked again

export class Application {
  readonly id: string;
  /** Who answered last. */
  by = $state<By>(edge() ? 'edge' : 'origin');
  /** How often something was changed, here or elsewhere, as far as this page knows: who shows it reads it again. */
  changes = $state(0);
  /** The copy on this device, open or opening. */
  copy = $state.raw<Replica>();
  /** The sync status of the edge of these pages; undefined at an origin. */
  edgeStatus = $state.raw<EdgeStatus>();
  /** Its name, after the origin took the application away from this device. */
  purgedName = $state('');
  #contact = $state<string>(); // when the origin, or the edge, last answered this page
  #isUnreachable = $state(false); // whether it did not, the last time
  #seeking = false;
  #lastWrite = 0; // when the origin last answered a write of this page, as Date.now() tells
  #settling = false;
  #opening: Promise<void> | undefined;
  #closed = false;
  #hasUnopenedCopy = $state(false); // a copy is on this device that is not opened yet
  readonly #token: Token;
  #addresses = new Map<string, Promise<string>>(); // by path, the one used last at the end

  constructor(id: string) {
    this.id = id;
    this.#hasUnopenedCopy = !edge() && offlineApp(id) !== undefined;
    this.#token = new Token(() => pageToken(id, offlineApp(id) && soon()));
  }

  /** Where what was written waits for the origin: in the copy on this device, or in the edge. */
  get outbox(): Outbox | undefined {
    return this.copy ?? this.edgeStatus;
  }

  /** The marks of unconfirmed changes, by the id of the input, model or concept. */
  get marks(): Record<'inputs' | 'models' | 'concepts', ReadonlyMap<string, MarkKind>> {
    return this.outbox?.marks ?? unmarked;
  }

  /** Whether a copy on this device may have pending operations that it has not listed yet. */
  get hasUnreadOperations(): boolean {
    return this.copy ? this.copy.status === undefined && !this.copy.fresh : this.#hasUnopenedCopy;
  }

  /** The pending operations and whether they can be sent: without a copy nothing is pending, and answered changes are at the origin. */
  get truth(): Truth {
    const { truth } = this.outbox ?? {};
    const reached = !this.hasUnreadOperations && (truth?.reached || (!this.edgeStatus && this.#contact !== undefined));
    return { queued: 0, sent: 0, conflicts: 0, ...truth, reached };
  }

  /** Whether the origin is out of reach, as far as this page knows. */
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

  /** The same, where this page has had no answer: on a previous page. */
  get lastContact(): string | undefined {
    return this.contact ?? this.copy?.contact;
  }

  /**
   * Answers a path under /v2 or /hosted, as fetch does. If no host can, it fails with a Failure of status 0. An effect that calls it runs
   * again when its arguments change, and not when the host does.
   */
  ask: Fetch = async (path, init) => (await untrack(() => this.#ask(path, init))).answer;

  /** The same from the origin alone, for data that a copy does not have: those from before the copy, and those that it lacks. */
  there: Fetch = async (path, init) => (await untrack(() => this.#away(path, init))).answer;

  async #ask(path: string, init?: RequestInit): Promise<SourcedAnswer> {
    const held = offlineApp(this.id);
    if (held && !this.copy) await waitForSession();
    const alone = this.copy ? this.copy.away || this.#isUnreachable : held && (held.offline || isUnknown());
    if (alone && !this.copy?.device.client) await this.begin(); // a copy that is kept takes a moment to open
    if (this.copy && this.#answers(this.copy, path, init)) {
      const here = await this.#here(this.copy, path, init);
      const picture = here.answer.status === 404 ? await this.#picture(this.copy, path) : undefined;
      if (picture) return { answer: picture, by: 'device' };
      if (this.copy?.offline || !(await isUnknownPath(here.answer, path))) return here;
    }
    try {
      return await this.#away(path, init);
    } catch (failure) {
      if (!(failure instanceof Failure && failure.status === 0)) throw failure;
      this.#noteUnreachable();
      await this.begin();
      if (!this.copy?.device.client || !this.copy.whole) throw failure;
      return this.#here(this.copy, path, init);
    }
  }

  /** Asks for a path below /v2; what does not succeed throws a Failure. */
  call = <T>(method: string, path: string, body?: object): Promise<T> => call<T>(this.ask, method, path, body);

  /** The same for a change. Its mark exists before the reader of the change reads again. */
  write = <T>(method: string, path: string, body?: object): Promise<T> => call<T>(this.send, method, path, body);

  /** Changes something, and answers as fetch does: for answers with a result for each input. */
  send: Fetch = async (path, init) => {
    let here = false; // whether the copy took it
    try {
      const answered = await untrack(() => this.#ask(path, init));
      here = answered.by === 'device';
      return answered.answer;
    } finally {
      const [copy, before] = [this.copy, this.changes];
      if (here) await copy?.refresh();
      else if (this.edgeStatus) await this.edgeStatus.refresh();
      else {
        this.#lastWrite = Date.now();
        if (copy?.status?.as_of && !copy.offline) await this.#waitForLastWrite(copy);
      }
      if (this.changes === before) this.changes++; // otherwise its readers were notified since the write
      if (init?.method === 'POST' && path === '/v2/inputs') void this.#settle();
    }
  };

  /** Says that something has changed whenever pictures that were added are read, until all are. */
  async #settle(): Promise<void> {
    if (this.#settling) return;
    this.#settling = true;
    type Answer = { counts: { to_process: number } };
    try {
      for (let left = Number.POSITIVE_INFINITY; left > 0; await new Promise((resolve) => setTimeout(resolve, 500))) {
        const { counts } = await this.call<Answer>('GET', '/inputs/status');
        if (counts.to_process < left) this.changes++;
        left = counts.to_process;
      }
    } catch {
      // readers of other data are notified
    }
    this.#settling = false;
  }

  /** The address, in this page's memory, of a picture under a path: "/v2/inputs/ID/thumbnail", "/hosted/NAME". */
  address(path: string): Promise<string> {
    const known = this.#addresses.get(path);
    if (known) this.#addresses.delete(path);
    const address = known ?? this.#load(path);
    this.#addresses.set(path, address);
    for (const [oldest, one] of this.#addresses) {
      if (this.#addresses.size <= mostAddresses) break;
      this.#addresses.delete(oldest);
      void one.then(revoke, () => {});
    }
    return address;
  }

  async #load(path: string): Promise<string> {
    try {
      const answer = await this.ask(path);
      if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
      return URL.createObjectURL(await answer.blob());
    } catch (failure) {
      this.#addresses.delete(path); // it may come later
      throw failure;
    }
  }

  /** Whether the copy answers a call: it has what this page has seen, and all that the call needs. */
  #answers(copy: Replica, path: string, init?: RequestInit): boolean {
    if (!copy.device.client || copy.status?.phase === 'purged') return false;
    if (copy.away) return true;
    if (copy.whole && (copy.offline || (this.#isUnreachable && !copy.has(0)))) return true; // nobody else can
    return copy.has(this.#lastWrite) && (copy.offline || !fetches(path, init));
  }

  async #here(copy: Replica, path: string, init?: RequestInit): Promise<SourcedAnswer> {
    const answer = await copy.device.ask(path, init);
    this.by = 'device';
    return { answer, by: 'device' };
  }

  /** The picture itself instead of its thumbnail, which a copy has only for its own pictures; undefined: it is not stored here. */
  async #picture(copy: Replica, path: string): Promise<Response | undefined> {
    const input = thumbnail.exec(path)?.[1];
    if (!input || !(copy.app.eager || this.offline)) return undefined;
    const source = await copy.device.ask(`${input}/source`);
    if (!source.ok) return undefined;
    const { picture } = ((await source.json()) as { source: { picture?: string } }).source;
    const answer = picture ? await copy.device.ask(new URL(picture).pathname) : undefined;
    return answer?.ok ? answer : undefined;
  }

  async #away(path: string, init?: RequestInit): Promise<SourcedAnswer> {
    await waitForSession(); // an edge is asked in another way than an origin
    const held = pastedKeyFor(this.id)?.authorization;
    const given = new Headers(init?.headers).get('Authorization') ?? held;
    if (!given && edge()?.open === false) throw new Failure(401); // its key was let go of
    const token = given ? '' : await this.#token.get();
    let answer = await over(path, init, given ?? `Bearer ${token}`);
    if (answer.status === 401 && token) {
      this.#token.refuse(token);
      answer = await over(path, init, `Bearer ${await this.#token.get()}`);
    } else if (answer.status === 401 && given === held) refuseKey(this.id); // it opens nothing any more
    const by = edge() && !this.edgeStatus?.isLocal ? 'edge' : 'origin'; // a server without an origin is an origin itself
    this.by = by;
    const now = new Date();
    this.#isUnreachable = false;
    if (!this.#contact || now.getTime() - Date.parse(this.#contact) > 1000) this.#contact = now.toISOString();
    if (!this.#opening && !this.#closed) void this.begin(); // nobody could be asked before
    return { answer, by };
  }

  /** Waits, for a moment at most, until this browser's copy can answer: a change in a previous page may be only in the copy. */
  async waitForCopy(): Promise<void> {
    if (!offlineApp(this.id)) return;
    const canAnswer = (copy = this.copy) => copy?.device.client && (copy.has(0) || (copy.whole && copy.offline));
    for (const began = performance.now(); !canAnswer() && performance.now() - began < patience; )
      await new Promise((resolve) => setTimeout(resolve, 50));
  }

  /** Notes that the origin did not answer, and asks again until it does, unless a copy does that or an edge is asked all the time. */
  #noteUnreachable(): void {
    this.#isUnreachable = true;
    if (!this.#seeking) void this.#seek();
  }

  async #seek(): Promise<void> {
    this.#seeking = true;
    while (this.#isUnreachable && !this.#closed) {
      await new Promise((resolve) => setTimeout(resolve, pause));
      if (this.copy?.status && !this.copy.offline) this.#isUnreachable = false;
      if (this.outbox?.status || document.visibilityState === 'hidden' || !navigator.onLine || !this.#isUnreachable)
        continue;
      try {
        await this.#away('/v2/inputs/status');
        this.changes++;
      } catch (failure) {
        if (!(failure instanceof Failure && failure.status === 0)) this.#isUnreachable = false; // it answers
      }
    }
    this.#seeking = false;
  }

  /** Waits until the changes at the origin are in the copy, which answers from then on. */
  async #waitForLastWrite(copy: Replica): Promise<void> {
    for (const began = performance.now(); !copy.has(this.#lastWrite) && performance.now() - began < patience; )
      await new Promise((resolve) => setTimeout(resolve, 50));
    this.#lastWrite = 0;
  }

  /** Waits until the origin has an input that was written here. Returns false if the origin is out of reach before. */
  async waitUntilSent(input: string): Promise<boolean> {
    for (; this.marks.inputs.has(input); await new Promise((resolve) => setTimeout(resolve, 250)))
      if (this.offline || this.#closed) return false;
    return !this.offline;
  }

  /** Opens this browser's copy of the application, or, in a demonstration, makes one; once. */
  begin(): Promise<void> {
    this.#opening ??= this.#begin().catch(() => {
      this.#opening = undefined; // its owner is unknown yet
    });
    return this.#opening;
  }

  async #begin(): Promise<void> {
    await waitForSession();
    if (edge()) {
      const { EdgeStatus } = await import('./edgeStatus.svelte');
      await loadWords();
      if (this.#closed) return;
      this.edgeStatus = new EdgeStatus(this.ask, () => this.changes++);
      void this.edgeStatus.start();
      return;
    }
    const held = offlineApp(this.id);
    // A server that answers decides about the owner of a copy; offline, it is the user of the device.
    if (held && isUnknown()) {
      this.#noteUnreachable();
      return this.join(held);
    }
    await this.#token.get().catch((failure) => {
      if (!(held && failure instanceof Failure && failure.status === 0)) throw failure;
    });
    if (held) return this.join(held);
    const session = sessionState();
    if (session.is !== 'known' || !session.session.demo || isDeclined(this.id)) return;
    const app = (await apps()).find(({ id }) => id === this.id);
    if (!app || app.local_only) return;
    await (await import('./device.svelte')).Device.idle();
    const { id, name, language, inputs } = app;
    await this.join({ id, name, language, ...(inputs <= mostEager && { eager: true }) }, { lasting: true });
  }

  /** Keeps a copy on this device, open from now on. lasting: only where the browser keeps it when the page goes. */
  async join(app: OfflineApp, { lasting = false } = {}): Promise<void> {
    if (this.copy) return;
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

  /** Opens a copy whose parts could not be had without the origin, as soon as they can; also one that has ended for want of them. */
  async #openAgain(copy: Replica, lasting: boolean): Promise<void> {
    const isUnreached = () => {
      const { state } = copy.device;
      const why = this.copy === copy && state.is === 'failed' ? state.failure : undefined;
      return why instanceof Failure && why.status === 0;
    };
    while (isUnreached()) {
      await new Promise((resolve) => setTimeout(resolve, pause));
      if (!isUnreached() || !(await copy.open())) continue;
      await this.#rememberCopy(copy, lasting);
      this.changes++;
    }
  }

  /** Keeps a copy that is open. */
  async #rememberCopy(copy: Replica, lasting: boolean): Promise<void> {
    const { state } = copy.device;
    if (lasting && !(state.is === 'ready' && state.keeps)) return this.#leave(copy);
    const { requestPersistence: persist, storePages: store } = await import('./offline.svelte');
    copy.remember();
    persist();
    this.#opening ??= Promise.resolve();
    void store(); // it waits for the origin, and nobody waits for it
  }

  async #leave(copy: Replica): Promise<void> {
    if (this.copy === copy) this.copy = undefined;
    await copy.close();
  }

  /** Deletes the copy from this device, with its pending operations. It is made again when the person wants one. */
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

  /** Closes the copy, which stays on this device. */
  async close(): Promise<void> {
    if (this.copy) await this.#leave(this.copy);
    this.#closed = true;
    this.edgeStatus?.close();
    for (const address of this.#addresses.values()) void address.then(revoke, () => {});
    this.#addresses.clear();
  }
}

/** Asks the origin. Where it is not reached, it fails with a Failure of status 0. */
async function over(path: string, init: RequestInit | undefined, authorization: string): Promise<Response> {
  const headers = new Headers(init?.headers);
  headers.set('Authorization', authorization);
  if (edge()) headers.set('X-Sightline-Page', '1'); // a page's reads do not count as calls of the key
  const reach = () =>
    fetch(path, { ...init, headers }).catch((failure) => {
      throw failure instanceof TypeError ? new Failure(0) : failure;
    });
  return withRetry(reach); // a key of an account has a rate, and a page that writes much can be faster
}

/** Whether a call makes who answers it fetch a picture from elsewhere, which a browser may not. */
function fetches(path: string, init?: RequestInit): boolean {
  if (init?.method !== 'POST' || typeof init.body !== 'string' || path.startsWith('/v2/sync')) return false;
  return /"url":\s*"https?:/.test(init.body);
}

/** Whether who answered has no such path at all, as a copy of another version than its origin's. */
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

/** The application with an id: one for all pages, for as long as the pages are open. */
export function application(id: string): Application {
  let one = open.get(id);
  if (!one) {
    one = new Application(id);
    open.set(id, one);
    void one.begin();
  }
  return one;
}

/** Closes them all, as when somebody else signs in. */
export async function closeApplications(): Promise<void> {
  const all = [...open.values()];
  open.clear();
  await Promise.all(all.map((one) => one.close()));
}
