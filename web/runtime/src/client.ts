// The API of the runtime for pages and for programs in Node: sends calls to the engine's worker and returns standard responses.

import type { CopyStatus, Digest } from './copy.ts';
import type { FilmProgress } from './film.ts';
import type { FromEngine, RuntimeInfo, Start, ToEngine } from './host.ts';
import type { Progress } from './load.ts';
import type { Answer, Request as Call, Pictures, Salvaged } from './messages.ts';
import type { Port } from './port.ts';

export type { CopyStatus, Digest } from './copy.ts';
export type { FilmProgress } from './film.ts';
export type { Progress } from './load.ts';
export type { Salvaged } from './messages.ts';

/** The options of a replica: the application and its origin. */
export interface CopyOptions {
  /** The origin's URL. Empty: the page's origin. It must be https, except for this device and for the page's origin. */
  origin: string;
  /** The application's id: 32 hex digits. */
  app: string;
  /**
   * Returns the credential for the origin, `Bearer …` or `Key …`, with scope All of the application. The runtime calls it again when the
   * origin refuses the last credential or that has nearly expired. It holds the result in memory only. If the promise rejects, the replica
   * sends its requests with an invalid token, since the origin then still reports whether the application was deleted.
   */
  credential: () => Promise<string>;
  /** The name of this replica, for display. */
  name?: string;
  /** 32 hexadecimal digits, the same for each replica of a device, by which the origin lists its last contact. */
  device?: string;
  /** `lazy`, the default: the replica fetches a picture when a caller needs it. `eager`: it fetches all pictures at once. */
  pictures?: 'lazy' | 'eager';
  /** Whether the replica starts offline, as after `sync.offline(true)`. Its first start needs the origin nevertheless. */
  offline?: boolean;
}

/** The options of a runtime on every platform. */
export interface CommonOptions {
  /**
   * The maximum number of workers that analyse pictures. By default the number of processors minus one, from one to four. Without a replica
   * the first worker starts at once.
   */
  workers?: number;
  /** The prefix of the URLs of hosted pictures. */
  publicUrl?: string;
  /** The number of seconds for which pictures of predict calls are hosted. By default a day. */
  keepPredicted?: number;
  /** The maximum time of one picture's analysis in milliseconds. By default ten seconds. */
  pictureTime?: number;
  onProgress?: (p: Progress) => void;
  /** Aborts the start. It has no effect on an open runtime: call `close`. */
  signal?: AbortSignal;
  /**
   * Opens a store that is damaged with the part that can be read: the writes before the damage, and the pictures before the damage.
   * `Client.salvaged` has the numbers. Without it, `open` rejects with an error of the name `DamagedError`, and also if nothing can be read.
   */
  salvage?: boolean;
  /** Makes the store's only application a replica of an origin's. The first start needs the origin, later ones do not. */
  copy?: CopyOptions;
}

/**
 * Returns the settings of a replica for the engine's thread. `pageOrigin` is the page's origin, and the default for `origin`. It throws a
 * TypeError for invalid options.
 */
export function copyStart(
  { origin, app, name, device, pictures, offline }: CopyOptions,
  pageOrigin?: string,
): Start['copy'] & object {
  if (!/^[0-9a-f]{32}$/.test(app)) throw new TypeError(`${app} is not the id of an application`);
  const base = (origin || pageOrigin || '').replace(/\/+$/, '');
  if (!URL.canParse(base) || !/^https?:$/.test(new URL(base).protocol))
    throw new TypeError(`${JSON.stringify(origin)} is not the URL of an origin`);
  const { protocol, hostname } = new URL(base);
  if (protocol === 'http:' && base !== pageOrigin && !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname))
    throw new TypeError(`${base} must begin with https: plain HTTP would send pictures and keys unencrypted`);
  return {
    origin: base,
    app,
    pictures: pictures ?? 'lazy',
    ...(name && { name }),
    ...(device && { device }),
    ...(offline && { offline }),
  };
}

/** A client of the runtime's replica, which this tab or another tab has open. */
export class ReplicaClient {
  /** Called when the status of the replica changes. */
  onchange: ((status: CopyStatus) => void) | undefined;

  #ask: (request: 'status' | 'digest' | 'offline' | 'online') => Promise<unknown>;

  constructor(ask: (request: 'status' | 'digest' | 'offline' | 'online') => Promise<unknown>) {
    this.#ask = ask;
  }

  /** Returns the replica's current status. */
  status(): Promise<CopyStatus> {
    return this.#ask('status') as Promise<CopyStatus>;
  }

  /**
   * Returns the digest of the replica's state after the folded part of the origin's log. At the same entry it equals the origin's digest.
   */
  digest(): Promise<Digest> {
    return this.#ask('digest') as Promise<Digest>;
  }

  /** `offline(true)` stops all requests to the origin until `offline(false)`, or until the store is opened again. */
  async offline(on: boolean): Promise<void> {
    await this.#ask(on ? 'offline' : 'online');
  }
}

type PendingCall<T> = {
  resolve: (value: T) => void;
  reject: (failure: unknown) => void;
  frames?: ((p: FilmProgress) => void) | undefined;
};

/** The options of `Client.fetch`: those of the global fetch, and more. */
export interface FetchOptions extends RequestInit {
  /** Called after each decoded frame of the call's videos. */
  onFrames?: (p: FilmProgress) => void;
  /** `onFrames` also gets each frame: a JPEG of at most 320 pixels a side, or in full size, and the answer for it. */
  pictures?: Pictures;
  /** Files by the URLs in the request. The runtime does not download these URLs: `{ 'http://here.invalid/film': file }`. */
  files?: Record<string, Blob>;
}

/** Returns the error for a name and a message that came from another thread. */
function failure(name: string, message: string): Error {
  if (name === 'AbortError' || name === 'NetworkError') return new DOMException(message, name);
  const e = new Error(message);
  e.name = name;
  return e;
}

/** An open runtime. Calls can run concurrently. */
export class Client {
  /**
   * The kind of store. `memory` ends with this page or program, `private` is the browser's private file system, `folder` a folder in Node.
   */
  get store(): RuntimeInfo['store'] {
    return this.#info.store;
  }

  /** Whether this page has the data open. Otherwise another tab has it and answers. It can change when that tab is closed. */
  get owner(): boolean {
    return this.#info.owner;
  }

  /** The part of the store that was read, if it was opened with `salvage`, in this tab or in the tab that has it open. */
  get salvaged(): Salvaged | undefined {
    return this.#info.salvaged;
  }

  /** The client of the replica; undefined if the runtime was opened without one. */
  get sync(): ReplicaClient | undefined {
    return this.#info.copy ? this.#sync : undefined;
  }

  /**
   * Called with the reason if the runtime ends without `close`: its thread failed, or the owner tab was closed and this tab cannot open the
   * store. Every later call rejects.
   */
  onend: ((reason: Error) => void) | undefined;

  #sync = new ReplicaClient((sync) => this.#send({ sync }));
  #port: Port;
  #prefix: string;
  #info!: RuntimeInfo; // set before `open` resolves
  #next = 1;
  #calls = new Map<number, PendingCall<unknown>>();
  #closed: Promise<void> | undefined;
  #whenClosed = () => {};
  #broken: Error | undefined;

  private constructor(port: Port, publicUrl: string) {
    this.#port = port;
    this.#prefix = new URL(publicUrl).pathname.replace(/\/$/, '');
  }

  /** Starts the engine behind a port, and resolves when it is open. */
  static open<T extends Client>(
    this: (new (port: Port, publicUrl: string) => T) | typeof Client,
    port: Port,
    start: Start,
    { onProgress, signal, copy }: CommonOptions,
  ): Promise<Client> {
    const c = new Client(port, start.publicUrl);
    return new Promise((resolve, reject) => {
      const fail = (reason: unknown) => {
        if (c.#broken) return;
        port.close();
        c.#break(reason as Error);
        reject(reason);
        if (c.#info && !c.#closed) c.onend?.(reason as Error);
      };
      if (signal?.aborted) return fail(signal.reason);
      const stop = () => fail(signal?.reason);
      signal?.addEventListener('abort', stop);
      port.onerror = fail;
      port.onmessage = (m: FromEngine) => {
        if ('alive' in m) return;
        if ('credential' in m) return void c.#sendCredential(m.credential, copy);
        if ('progress' in m) return onProgress?.(m.progress);
        if ('opened' in m) {
          signal?.removeEventListener('abort', stop);
          c.#info = m.opened;
          onProgress?.({ stage: 'ready' });
          return resolve(c);
        }
        if ('failed' in m && !('id' in m)) return fail(failure(m.name, m.failed));
        c.#take(m);
      };
      port.post({ start } satisfies ToEngine);
    });
  }

  /** Answers the engine's question for a credential, by the `credential` option. */
  async #sendCredential(credential: number, copy: CopyOptions | undefined): Promise<void> {
    try {
      if (!copy) throw new Error('no credential: the runtime was opened without a replica');
      this.#port.post({ credential, value: await copy.credential() } satisfies ToEngine);
    } catch (failure) {
      this.#port.post({ credential, refused: String((failure as Error)?.message ?? failure) } satisfies ToEngine);
    }
  }

  #take(m: FromEngine): void {
    if ('closed' in m) this.#whenClosed();
    if ('copy' in m) this.#sync.onchange?.(m.copy);
    if (!('id' in m)) return;
    const call = this.#calls.get(m.id);
    if ('frames' in m) {
      const { frame, ...progress } = m.frames;
      const seen = frame && { frame: { picture: frame.picture, answer: response(frame.answer) } };
      call?.frames?.({ ...progress, ...seen });
      return;
    }
    this.#calls.delete(m.id);
    if ('failed' in m) call?.reject(failure(m.name, m.failed));
    else call?.resolve('answer' in m ? m.answer : 'told' in m ? m.told : m.value);
  }

  #break(reason: Error): void {
    this.#broken = reason;
    for (const call of this.#calls.values()) call.reject(reason);
    this.#calls.clear();
    this.#whenClosed();
  }

  #send(
    m:
      | { request: Call; frames?: true; pictures?: Pictures; files?: [string, Blob][] }
      | { ask: string }
      | { rendition: Blob }
      | { sync: 'status' | 'digest' | 'offline' | 'online' },
    signal?: AbortSignal | null,
    frames?: (p: FilmProgress) => void,
  ): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#broken || this.#closed)
        return reject(this.#broken ?? new DOMException('the runtime is closed', 'InvalidStateError'));
      if (signal?.aborted) return reject(signal.reason);
      const id = this.#next++;
      const stop = () => {
        this.#calls.delete(id);
        this.#port.post({ abort: id } satisfies ToEngine);
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', stop);
      const cleanUp = () => signal?.removeEventListener('abort', stop);
      this.#calls.set(id, {
        resolve: (value) => {
          cleanUp();
          resolve(value);
        },
        reject: (reason) => {
          cleanUp();
          reject(reason);
        },
        frames,
      });
      const body = 'request' in m && m.request.body;
      this.#port.post({ id, ...m } satisfies ToEngine, body ? [body.buffer as ArrayBuffer] : []);
    });
  }

  /**
   * Works like the global fetch, for `/v2/…` and for hosted pictures, `/hosted/…`. The runtime computes the answer without a server. It
   * rejects if the path is another one, the call is aborted or the runtime ends. Every other failure is a response with its status.
   */
  async fetch(input: string | URL | Request, init?: FetchOptions): Promise<Response> {
    const r = new Request(input instanceof Request ? input : new URL(input, 'http://runtime.invalid'), init);
    const { pathname, search } = new URL(r.url);
    const path =
      this.#prefix && pathname.startsWith(`${this.#prefix}/`) ? pathname.slice(this.#prefix.length) : pathname;
    if (!/^\/(v2|hosted)(\/|$)/.test(path)) throw new TypeError(`${pathname} is neither below /v2 nor below /hosted`);
    const request: Call = { method: r.method, path, query: search.slice(1) };
    const authorization = r.headers.get('Authorization');
    const session = r.headers.get('X-Clarifai-Session-Token');
    if (authorization) request.authorization = authorization;
    if (session) request.session = session;
    const known = r.headers.get('If-None-Match');
    if (known) request.known = known;
    const client = r.headers.get('X-Clarifai-Client');
    if (client) request.client = client;
    if (r.body) request.body = new Uint8Array(await r.arrayBuffer());
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
    const frames = init?.onFrames;
    const files = init?.files && Object.entries(init.files);
    const pictures = init?.pictures;
    const call = {
      request,
      ...(frames && { frames: true as const }),
      ...(pictures && { pictures }),
      ...(files && { files }),
    };
    return response((await this.#send(call, signal, frames)) as Answer);
  }

  /**
   * Returns a JPEG of a picture that an img element may not draw: upright, without metadata, of at most 2,048 pixels a side. The picture need
   * not be stored. It rejects with the reason if the runtime cannot decode the picture.
   */
  async rendition(picture: Blob, { signal }: { signal?: AbortSignal } = {}): Promise<Blob> {
    const jpeg = (await this.#send({ rendition: picture }, signal)) as Uint8Array<ArrayBuffer>;
    return new Blob([jpeg], { type: 'image/jpeg' });
  }

  /** Returns the memory of the engine's instance in bytes: `heap` is in use, and `system` was obtained from the host. */
  async memory(): Promise<{ heap: number; system: number }> {
    const [{ Reader }, { getMemoryReply }] = await Promise.all([import('./envelope.ts'), import('./envelope.gen.ts')]);
    return getMemoryReply(new Reader((await this.#send({ ask: 'memory' })) as Uint8Array));
  }

  /** Ends the runtime, and resolves when its files are closed. Calls in progress reject. */
  close(): Promise<void> {
    this.#closed ??= new Promise<void>((resolve) => {
      this.#whenClosed = resolve;
      if (this.#broken) resolve();
      else this.#port.post({ close: true } satisfies ToEngine);
    }).then(() => {
      this.#port.close();
      this.#break(new DOMException('the runtime was closed', 'AbortError'));
    });
    return this.#closed;
  }
}

/** Returns an answer as a standard Response. */
export function response({ status, contentType, headers, body }: Answer): Response {
  const all = new Headers(headers);
  if (contentType) all.set('Content-Type', contentType);
  const empty = [101, 204, 205, 304].includes(status);
  return new Response(empty ? null : body, { status, headers: all });
}
