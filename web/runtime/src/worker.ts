// The script of all workers in a page.

import { hubName, listen, Peer } from './channel.ts';
import { PrivateFiles } from './files.ts';
import {
  Asker,
  analyser,
  Desk,
  type EngineHandle,
  type FromAnalyser,
  type FromEngine,
  infoOf,
  type Platform,
  run,
  type Start,
  type ToAnalyser,
  type ToEngine,
} from './host.ts';
import { served } from './load.ts';
import type { Port } from './port.ts';

const platform: Platform = {
  source: (base) => served(new URL(base)),
  async files(start): Promise<PrivateFiles | undefined> {
    if (start.store !== 'private') return undefined;
    try {
      return await PrivateFiles.open(start.name);
    } catch (failure) {
      // Some private windows have no such files. Any other error, such as files in use, must be reported.
      if (!['SecurityError', 'NotSupportedError', 'TypeError'].includes((failure as Error).name)) throw failure;
      return undefined;
    }
  },
  spawn() {
    const worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module', name: 'sightline analyser' });
    const port: Port = {
      post: (message, transfer = []) => worker.postMessage(message, transfer),
      onmessage: () => {},
      onerror: () => {},
      close: () => worker.terminate(),
    };
    worker.onmessage = ({ data }) => port.onmessage(data as never);
    worker.onerror = (e) => port.onerror(new Error(e.message || 'a worker failed'));
    return port;
  },
};

const send = (m: FromEngine, transfer: ArrayBuffer[] = []) => self.postMessage(m, { transfer });

/** The engine's worker. It runs the engine, or forwards calls to the tab that runs it. */
class EngineWorker {
  #start: Start;
  #desk: Desk | undefined; // set while the engine runs here
  #peer: Peer | undefined; // set while the engine runs in another tab
  #connected = false; // whether the owner has answered #peer
  #queuedMessages: ToEngine[] = []; // messages that wait for the engine or the owner
  #openCalls = new Map<number, ToEngine>(); // calls sent to the owner without an answer, by id
  #end: () => void = () => {}; // ends the engine and releases the lock
  #lockWait = new AbortController(); // aborts the wait for the lock
  #asker = new Asker(send); // asks the page for credentials

  constructor(start: Start) {
    this.#start = start;
  }

  async open(): Promise<void> {
    const { store, name } = this.#start;
    if (store !== 'private' || !navigator.locks) return void (await this.#startEngine());
    const isOwner = await new Promise<boolean>((resolve, reject) => {
      const options = { ifAvailable: true };
      navigator.locks
        .request(hubName(name), options, (lock) => {
          resolve(!!lock);
          return lock ? this.#serveStore() : undefined;
        })
        .catch(reject);
    });
    if (!isOwner) await this.#follow();
  }

  /** Owns the store: runs the engine and answers peers until #end is called. The lock is held until the promise resolves. */
  async #serveStore(): Promise<void> {
    const ended = new Promise<void>((resolve) => {
      this.#end = resolve;
    });
    const running = await this.#startEngine();
    if (!running) return;
    const opened = infoOf(running);
    const unlisten = running.store === 'private' ? listen(this.#start.name, running, opened) : () => {};
    await ended;
    unlisten();
    await running.close();
    send({ closed: true });
  }

  async #startEngine(): Promise<EngineHandle | undefined> {
    try {
      const running = await run(platform, this.#start, (progress) => send({ progress }), this.#asker);
      this.#desk = new Desk(running, send);
      if (this.#start.store !== 'private' || !navigator.locks) {
        this.#end = () => void running.close().then(() => send({ closed: true }));
      }
      send({ opened: infoOf(running) });
      for (const m of this.#queuedMessages.splice(0)) void this.#desk.take(m);
      return running;
    } catch (failure) {
      const { name, message } = failure as Error;
      send({ failed: message, name });
      return undefined;
    }
  }

  /** Forwards calls to the tab that owns the store, and waits for its lock to become the owner. */
  async #follow(): Promise<void> {
    send({ progress: { stage: 'wait' } });
    const peer = await Peer.open(this.#start.name);
    this.#peer = peer;
    peer.onmessage = (m) => {
      if ('opened' in m) {
        this.#connected = true;
        this.#start.salvage = false; // in case this tab becomes the owner: the store is no longer damaged
        for (const message of this.#queuedMessages.splice(0)) this.#forward(message);
      }
      if ('id' in m && !('frames' in m)) this.#openCalls.delete(m.id);
      if ('copy' in m && this.#start.copy) this.#start.copy.offline = m.offline; // in case this tab becomes the owner
      send(m);
    };
    peer.hello();
    const options = { signal: this.#lockWait.signal };
    navigator.locks
      .request(hubName(this.#start.name), options, () => this.#inherit(peer))
      .catch(
        (failure: Error) => failure.name !== 'AbortError' && send({ failed: failure.message, name: failure.name }),
      );
  }

  /**
   * Makes this tab the owner after the previous owner has ended. Unanswered reads are repeated. It is unknown whether unanswered writes
   * were done, so their callers get a NetworkError.
   */
  #inherit(peer: Peer): Promise<void> {
    peer.close();
    this.#peer = undefined;
    for (const [id, m] of this.#openCalls) {
      const again = !('request' in m) || /^(GET|HEAD)$/.test(m.request.method);
      if (again) this.#queuedMessages.push(m);
      else send({ id, name: 'NetworkError', failed: 'the tab that served this call was closed' });
    }
    this.#openCalls.clear();
    return this.#serveStore();
  }

  #forward(m: ToEngine): void {
    if ('id' in m) this.#openCalls.set(m.id, m);
    this.#peer?.post(m);
  }

  take(m: ToEngine): void {
    if ('close' in m) this.#close();
    else if ('credential' in m) this.#asker.take(m);
    else if (this.#desk) void this.#desk.take(m);
    else if (this.#peer && this.#connected) this.#forward(m);
    else this.#queuedMessages.push(m);
  }

  #close(): void {
    this.#lockWait.abort();
    if (this.#peer) {
      this.#peer.close();
      send({ closed: true });
    } else this.#end();
  }
}

let engine: EngineWorker | undefined;
const analyse = analyser({
  post: send as Port['post'],
  onmessage: () => {},
  onerror: () => {},
  close: () => self.close(),
});

self.onmessage = ({ data }: MessageEvent<ToEngine | ToAnalyser>) => {
  if ('analyser' in data || 'job' in data || 'film' in data || 'module' in data) return void analyse(data);
  if (!('start' in data)) return engine?.take(data);
  engine = new EngineWorker(data.start);
  engine.open().catch((failure: Error) => send({ failed: failure.message, name: failure.name }));
};
self.postMessage({ alive: true } satisfies FromAnalyser); // Spares waits for this message
