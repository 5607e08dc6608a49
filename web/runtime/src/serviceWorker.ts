// The service worker of pages with a runtime. The query of its URL has its settings:
//
//     answer=/local/  It answers requests of its pages for /local/v2/… and /local/hosted/… by the runtime that a page
//                     of this site has open. With `answer=/` these are the requests for /v2/… and /hosted/….
//     name=main       the private store of that runtime
//     shell=/a.json   It stores the URLs in that JSON list, and serves them if the network does not answer.
//
// Requests of a replica to its origin bypass it.
//
// The service worker has no data. It asks the owner of the store, as another tab does. Its messages must match channel.ts. If the store has
// no owner, it waits for 5 seconds and then answers 503.

interface ExtendableEvent extends Event {
  waitUntil(p: Promise<unknown>): void;
}
interface FetchEvent extends ExtendableEvent {
  request: Request;
  respondWith(r: Promise<Response>): void;
}
interface Scope {
  addEventListener(kind: 'install' | 'activate', take: (e: ExtendableEvent) => void): void;
  addEventListener(kind: 'fetch', take: (e: FetchEvent) => void): void;
  skipWaiting(): Promise<void>;
  clients: { claim(): Promise<void> };
  registration: { scope: string };
}

{
  const scope = self as unknown as Scope;
  const params = new URL(location.href).searchParams;
  const answer = params.get('answer');
  const store = params.get('name') ?? 'main';
  const shell = params.get('shell');
  const startTimeout = 30_000; // ms to wait for a tab that has the store and is still starting
  const ownerTimeout = 5_000; // ms to wait while no tab has the store

  // ---- pages without a network

  const shellCache = 'sightline-shell';
  const networkTimeout = 3_000; // ms that the network has to answer a request for a stored file
  let silent = false; // whether the network has not answered in that time nor since: requests for stored files then do not wait

  const install = async () => {
    if (shell) {
      const list = (await (await fetch(shell, { cache: 'no-cache' })).json()) as string[];
      const cache = await caches.open(shellCache);
      await cache.addAll(list.map((url) => new Request(url, { cache: 'no-cache' })));
      const listedUrls = new Set(list.map((url) => new URL(url, location.href).href));
      for (const { url } of await cache.keys()) if (!listedUrls.has(url)) await cache.delete(url);
    }
    await scope.skipWaiting();
  };

  /** Answers a request for a file of the shell. An immutable file comes from the cache, any other from the network while that answers. */
  const shellFile = async (request: Request): Promise<Response> => {
    const cache = await caches.open(shellCache);
    const isNavigation = request.mode === 'navigate';
    // The stored page of the scope serves every page address that the list does not contain.
    const old =
      (await cache.match(isNavigation ? request.url.replace(/[?#].*/, '') : request)) ??
      (isNavigation && !/^\/(v2|hosted)\//.test(new URL(request.url).pathname)
        ? await cache.match(scope.registration.scope)
        : undefined);
    if (!old) return fetch(request);
    if (/immutable/.test(old.headers.get('Cache-Control') ?? '')) return old;
    const fetchFresh = async () => {
      const answer = await fetch(request);
      silent = false;
      if (answer.ok && !answer.redirected && !isNavigation) await cache.put(request, answer.clone());
      return answer;
    };
    let timer: ReturnType<typeof setTimeout> | undefined;
    const timeout = new Promise<Response>((resolve) => {
      const onTimeout = () => {
        silent = true;
        resolve(old);
      };
      timer = setTimeout(onTimeout, silent ? 0 : networkTimeout);
    });
    return Promise.race([fetchFresh().catch(() => old), timeout]).finally(() => clearTimeout(timer));
  };

  // ---- /v2 from a page

  type RuntimeAnswer = {
    status: number;
    contentType: string;
    headers: [string, string][];
    body: Uint8Array<ArrayBuffer>;
  };
  type PendingCall = {
    m: { id: number };
    safe: boolean;
    resolve: (r: RuntimeAnswer) => void;
    reject: (e: Error) => void;
  };

  /** No page of this origin has the data open. */
  class NoOwner extends Error {}

  const peer = crypto.randomUUID();
  const lockName = `sightline/${store}`;
  const hub = new BroadcastChannel(lockName);
  const line = new BroadcastChannel(`${lockName}/${peer}`);
  let connected: Promise<void> | undefined;
  let onOpened: () => void = () => {};
  let next = 1;
  const pendingCalls = new Map<number, PendingCall>();

  // This worker holds a lock for as long as it runs. The owner notices by the lock when the worker has ended.
  if (answer) void navigator.locks.request(`${lockName}/${peer}`, () => new Promise(() => {}));
  hub.onmessage = ({ data }) => {
    if ('here' in data) hub.postMessage({ hello: peer });
  };
  line.onmessage = ({ data }) => {
    if ('opened' in data) return onOpened();
    const w = pendingCalls.get(data.id);
    pendingCalls.delete(data.id);
    if ('answer' in data) w?.resolve(data.answer);
    else if ('failed' in data) w?.reject(new Error(data.failed));
  };

  /** Waits for the owner's welcome, and watches its lock to notice when it ends. It rejects with NoOwner. */
  const connect = async (): Promise<void> => {
    const opened = new Promise<void>((resolve) => {
      onOpened = resolve;
    });
    hub.postMessage({ hello: peer });
    const since = performance.now();
    for (;;) {
      const isOpened = await Promise.race([
        opened.then(() => true),
        new Promise<false>((r) => setTimeout(r, 250, false)),
      ]);
      if (isOpened) break;
      const isLocked = (await navigator.locks.query()).held?.some((l) => l.name === lockName);
      if (performance.now() - since > (isLocked ? startTimeout : ownerTimeout)) throw new NoOwner();
    }
    void navigator.locks.request(lockName, { mode: 'shared' }, () => {
      connected = undefined; // the owner has ended, and another tab can become the owner at once
      for (const [id, w] of pendingCalls) {
        if (w.safe) continue; // the loop below sends the call to the next owner
        pendingCalls.delete(id);
        w.reject(new Error('the page that served this call was closed'));
      }
      for (const w of pendingCalls.values()) void reach().then(() => line.postMessage(w.m), w.reject);
    });
  };

  const reach = (): Promise<void> => {
    connected ??= connect().catch((failure) => {
      connected = undefined;
      throw failure;
    });
    return connected;
  };

  const call = async (request: Request, path: string): Promise<Response> => {
    const body = new Uint8Array(await request.arrayBuffer());
    const id = next++;
    const m = {
      id,
      request: {
        method: request.method,
        path,
        query: new URL(request.url).search.slice(1),
        authorization: request.headers.get('Authorization') ?? '',
        session: request.headers.get('X-Clarifai-Session-Token') ?? '',
        known: request.headers.get('If-None-Match') ?? '',
        client: request.headers.get('X-Clarifai-Client') ?? '',
        body,
      },
    };
    const stop = () => line.postMessage({ abort: id });
    request.signal.addEventListener('abort', stop);
    try {
      await reach();
      const safe = request.method === 'GET' || request.method === 'HEAD';
      const a = await new Promise<RuntimeAnswer>((resolve, reject) => {
        pendingCalls.set(id, { m, safe, resolve, reject });
        line.postMessage(m);
      });
      const headers = new Headers(a.headers);
      if (a.contentType) headers.set('Content-Type', a.contentType);
      return new Response([204, 205, 304].includes(a.status) ? null : a.body, { status: a.status, headers });
    } catch (failure) {
      if (!(failure instanceof NoOwner)) return Response.error(); // as if a server had closed the connection
      const status = {
        code: 40030,
        description: 'Service busy',
        details: 'No open page of this site is running Sightline.',
      };
      return Response.json({ status }, { status: 503, headers: { 'Retry-After': '1' } });
    } finally {
      request.signal.removeEventListener('abort', stop);
    }
  };

  /** Returns the request's path below `answer` if it begins with /v2/ or /hosted/, otherwise undefined. */
  const local = (request: Request): string | undefined => {
    const { origin, pathname } = new URL(request.url);
    if (!answer || origin !== location.origin || !pathname.startsWith(answer)) return undefined;
    const path = pathname.slice(answer.length - 1);
    return /^\/(v2|hosted)\//.test(path) ? path : undefined;
  };

  scope.addEventListener('install', (e) => e.waitUntil(install()));
  scope.addEventListener('activate', (e) => e.waitUntil(scope.clients.claim()));
  scope.addEventListener('fetch', (e) => {
    if (e.request.headers.get('Accept') === 'application/vnd.sightline.sync') return;
    const path = local(e.request);
    if (path) e.respondWith(call(e.request, path));
    else if (shell && e.request.method === 'GET' && new URL(e.request.url).origin === location.origin)
      e.respondWith(shellFile(e.request));
  });
}
