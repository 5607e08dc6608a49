// The code of the workers: of the one with the engine, and of those that analyse. Both are the same script, in pages and in Node, and the
// first message selects the kind.

import { withMemory } from './command.ts';
import type { CopyStart, CopyStatus, Digest } from './copy.ts';
import { Credential } from './credential.ts';
import { Engine } from './engine.ts';
import { type Files, type StoreFiles, wipe } from './files.ts';
import { type Decoder, type DecoderMessage, decodeVideo, type FilmProgress, Films, type FilmTask } from './film.ts';
import { compile, Guest, type GuestServices, type Modules, system } from './guest.ts';
import { load, type Progress, type RuntimeFiles, type Source } from './load.ts';
import {
  type Answer,
  decodeReply,
  decodeResult,
  encodeQuestion,
  GuestError,
  type Pictures,
  type Request,
  refusals,
  type Settings,
} from './messages.ts';
import { type Bundles, Networks } from './networks.ts';
import { JoinError, join, type Register } from './origin.ts';
import { type Analyser, Pool } from './pool.ts';
import type { Port } from './port.ts';
import { decodeDigest, hex } from './sync.ts';

/** The settings of an engine, in a form that can be sent between threads. */
export interface Start {
  base: string; // where the files of the runtime are, as the platform reads it
  store: 'private' | 'memory' | { folder: string };
  name: string; // of the store
  workers: number;
  publicUrl: string;
  keepPredicted?: number; // seconds
  pictureTime: number; // milliseconds
  copy?: CopyStart; // the one application of the store is kept a copy
}

/** The services of the platform. */
export interface Platform {
  source(base: string): Source;
  files(start: Start): Promise<StoreFiles | undefined>; // undefined: in memory
  spawn(): Port; // another worker with this script
}

/** The messages to an engine's worker. */
export type ToEngine =
  | { start: Start }
  | { id: number; request: Request; frames?: true; pictures?: Pictures; files?: [string, Blob][] }
  | { id: number; ask: string }
  | { id: number; sync: 'status' | 'digest' | 'offline' | 'online' }
  | { credential: number; value: string }
  | { credential: number; refused: string }
  | { abort: number }
  | { close: true };

/** What it tells. */
export type FromEngine =
  | { alive: true }
  | { progress: Progress }
  | { opened: RuntimeInfo }
  | { failed: string; name: string }
  | { id: number; answer: Answer }
  | { id: number; frames: FilmProgress<Answer> } // of a request that asked for it, and is not answered yet
  | { id: number; value: Uint8Array<ArrayBuffer> }
  | { id: number; told: CopyStatus | Digest | null }
  | { id: number; failed: string; name: string }
  | { credential: number } // is wanted of the page
  | { copy: CopyStatus; offline: boolean } // where the copy stands now
  | { closed: true };

/** The facts about an open runtime. */
export interface RuntimeInfo {
  store: 'private' | 'memory' | 'folder';
  /** This thread has the data; another tab's has it otherwise, and is asked. */
  owner: boolean;
  copy: boolean;
}

/** The messages to and from an analysing worker. */
export type ToAnalyser =
  | { analyser: { modules: Modules; bundles: Bundles; older: ReadonlyMap<string, Bundles>; settings: Settings } }
  | { job: Uint8Array<ArrayBuffer> }
  | { film: FilmTask };
export type FromAnalyser =
  | { alive: true }
  | { ready: true }
  | { result: Uint8Array<ArrayBuffer> }
  | DecoderMessage
  | { failed: string };

/** The networks that a guest may use. It lists the files of an older one, by the empty name, before it reads them: `used` notes that. */
function networksOf(
  own: Bundles,
  older: ReadonlyMap<string, Bundles>,
  used = new Set<string>(),
): Pick<GuestServices, 'bundle' | 'older'> {
  return {
    bundle: (name) => own.get(name),
    older(base, name) {
      const bundles = older.get(hex(base));
      if (name || !bundles) return bundles?.get(name);
      used.add(hex(base));
      return new TextEncoder().encode([...bundles.keys()].join('\n'));
    },
  };
}

/** Serves the other end of a port as an analysing worker. */
export function analyser(port: Port): (message: ToAnalyser) => Promise<void> {
  let guest: Guest | undefined;
  return async (message) => {
    try {
      if ('analyser' in message) {
        const { modules, bundles, older, settings } = message.analyser;
        guest = await Guest.open(modules, { ...system, ...networksOf(bundles, older) }, settings);
        bundles.clear(); // they have been read
        port.post({ ready: true } satisfies FromAnalyser);
        return;
      }
      if (!guest) throw new Error('the worker for this job was not started');
      if ('film' in message) {
        const frame = (frame: Uint8Array<ArrayBuffer>, of: number) =>
          port.post({ frame, of } satisfies FromAnalyser, [frame.buffer]);
        const film = await decodeVideo(guest, message.film, frame);
        return port.post({ film } satisfies FromAnalyser);
      }
      const result = guest.call('analyse', message.job);
      port.post({ result } satisfies FromAnalyser, [result.buffer]);
    } catch (failure) {
      port.post({ failed: String(failure) } satisfies FromAnalyser);
    }
  };
}

/**
 * The workers to come. One more than there are has its script loaded and does nothing: a page that has lost its network could
 * load none.
 */
class Spares {
  #platform: Platform;
  #next: Promise<Port | undefined> | undefined; // undefined: it could not be loaded

  constructor(platform: Platform) {
    this.#platform = platform;
  }

  /** Whether one stands ready, if need be after loading it. */
  async ready(): Promise<boolean> {
    this.#next ??= new Promise((resolve) => {
      const port = this.#platform.spawn();
      port.onmessage = () => resolve(port);
      port.onerror = () => resolve(undefined);
    });
    const next = this.#next;
    if (await next) return true;
    if (this.#next === next) this.#next = undefined;
    return false;
  }

  /** The one that stands ready, or a new one. */
  async take(): Promise<Port> {
    const next = this.#next;
    this.#next = undefined;
    void this.ready(); // at once: who closes meanwhile closes that one too
    return (await next) ?? this.#platform.spawn();
  }

  close(): void {
    void this.#next?.then((port) => port?.close());
  }
}

/** A worker that analyses, from its owner's side. It has separate `bundles` from now on. */
async function startAnalyser(port: Port, start: ToAnalyser, patience: number): Promise<Analyser> {
  let settle: { resolve: (m: FromAnalyser) => void; reject: (e: Error) => void } | undefined;
  port.onmessage = (m: FromAnalyser) => {
    if ('failed' in m) settle?.reject(new Error(m.failed));
    else if (!('alive' in m)) settle?.resolve(m);
  };
  port.onerror = (failure) => settle?.reject(failure);
  const tell = (m: ToAnalyser, transfer?: ArrayBuffer[]) =>
    new Promise<FromAnalyser>((resolve, reject) => {
      settle = { resolve, reject };
      port.post(m, transfer);
    });
  const timer = setTimeout(() => settle?.reject(new Error('the worker did not start in time')), patience);
  try {
    await tell(start);
  } catch (failure) {
    port.close();
    throw failure;
  } finally {
    clearTimeout(timer);
  }
  return {
    analyse: async (job) => ((await tell({ job }, [job.buffer])) as { result: Uint8Array }).result,
    close: () => port.close(),
  };
}

/** A worker that analyses, as one for videos. */
async function startDecoder(port: Port, start: ToAnalyser, patience: number): Promise<Decoder> {
  await startAnalyser(port, start, patience);
  return {
    run: (task, onFrame) =>
      new Promise((resolve, reject) => {
        port.onmessage = (m: FromAnalyser) => {
          if ('frame' in m) onFrame(m.frame, m.of);
          else if ('film' in m) resolve(m.film);
          else if ('result' in m) resolve(decodeResult(m.result));
          else if ('failed' in m) reject(new Error(m.failed));
        };
        port.onerror = reject;
        port.post(task satisfies ToAnalyser, 'job' in task ? [task.job.buffer] : []);
      }),
    close: () => port.close(),
  };
}

// To which the garbage collectors keep where they can: without them they take a third more than is in use, or 16 MB more.
const engineMemory = 288 << 20;
const analyserMemory = 128 << 20;
const startPatience = 60_000; // ms, on a slow phone
const idle = 60_000;

/** Called with the status of a copy. */
type Watch = (copy: CopyStatus, offline: boolean) => void;

/** An engine with its workers and its files. */
export interface EngineHandle {
  engine: Engine;
  store: RuntimeInfo['store'];
  watches: Set<Watch>;
  close(): Promise<void>;
}

const saying = 20_000; // ms that a page may take to say what it shows an origin

/** A page's answers to the question for a credential. */
export class Asker {
  #post: (m: FromEngine) => void;
  #next = 1;
  #waiting = new Map<number, { resolve: (value: string) => void; reject: (why: Error) => void; over: () => void }>();

  constructor(post: (m: FromEngine) => void) {
    this.#post = post;
  }

  ask(): Promise<string> {
    return new Promise((resolve, reject) => {
      const id = this.#next++;
      const timer = setTimeout(() => this.take({ credential: id, refused: 'the page does not say in time' }), saying);
      const over = () => clearTimeout(timer);
      this.#waiting.set(id, { resolve, reject, over });
      this.#post({ credential: id });
    });
  }

  take(m: Extract<ToEngine, { credential: number }>): void {
    const waiting = this.#waiting.get(m.credential);
    this.#waiting.delete(m.credential);
    waiting?.over();
    if ('value' in m) waiting?.resolve(m.value);
    else waiting?.reject(new Error(m.refused));
  }
}

/** Loads everything and opens the store. For a new copy it asks the origin for the application. */
export async function run(
  platform: Platform,
  start: Start,
  progress: (p: Progress) => void,
  asker: Asker,
): Promise<EngineHandle> {
  const log = (line: string) => system.log(4, line);
  // A worker's script comes by way of this thread, which computes once the engine starts: so it is loaded before.
  const spares = new Spares(platform);
  let files: StoreFiles | undefined;
  try {
    const from = platform.source(start.base);
    const loading = load(from, progress);
    [files] = await Promise.all([platform.files(start), loading, spares.ready()]);
    progress({ stage: 'start' });
    const loaded = await loading;
    const modules = await compile(loaded.guest, loaded.kernels);
    const networks = files && (await Networks.open(files.folder, loaded.bundles));
    const older = networks?.older ?? new Map();
    const analysts = makeAnalysers(spares, start, modules, loaded, older, log);
    const { pool } = analysts;
    const used = new Set<string>();
    const own = networksOf(loaded.bundles, older, used);
    const more = () => loaded.more().catch(() => {}); // it is loaded when a training needs it
    const bundle = (name: string) => {
      const data = own.bundle(name);
      if (!data && loaded.rest.includes(name)) void more(); // the guest reads it again
      return data;
    };
    const services: GuestServices = { ...system, ...own, bundle, ...(files && { files }) };
    let base = new Uint8Array();
    const settle = async () =>
      networks?.settle(base, used).catch((failure) => log(`the network is not stored with the inputs: ${failure}`));
    const instance = async (register?: Register) => {
      const guest = await Guest.open(modules, services, settingsOf(start, loaded, files, register));
      // The network is stored before the first call can store an input. If the disk is full, the store still opens.
      base = decodeReply(guest.call('ask', encodeQuestion('network'))).slice() as Uint8Array<ArrayBuffer>;
      await settle();
      return guest;
    };
    const watches = new Set<Watch>();
    const credential = new Credential(() => asker.ask());
    const { copy } = start;
    let emptied: Promise<void> | undefined;
    const empty = async () => {
      if (files) wipe(files);
      await networks?.clear();
    };
    const open = copy ? () => openCopy(copy, instance, files, empty, credential) : () => instance();
    const onChange: Watch = (status, offline) => {
      for (const watch of watches) watch(status, offline);
    };
    const onPurge = (kept: boolean) => {
      if (!kept) emptied = empty().catch((failure) => log(`the store is not emptied: ${failure}`));
    };
    const analysing = pool.start();
    const keeping = copy && { copy: { ...copy, credential, onChange }, onPurge };
    const engine = await Engine.open({ open, ...analysts, log, ...keeping });
    await analysing;
    void more().then(settle);
    const store = !files ? 'memory' : start.store === 'private' ? 'private' : 'folder';
    const close = async () => {
      await engine.close();
      await emptied;
      spares.close();
      files?.close();
    };
    return { engine, store, watches, close };
  } catch (failure) {
    spares.close();
    files?.close();
    throw failure;
  }
}

/** Opens an instance of a copy; a store that has nothing of it yet takes what the origin says of the application first. */
async function openCopy(
  { origin, app }: CopyStart,
  instance: (register?: Register) => Promise<Guest>,
  files: Files | undefined,
  empty: () => Promise<void>,
  credential: Credential,
): Promise<Guest> {
  if (files && files.size(0) + files.size(1) > 0)
    try {
      return await instance();
    } catch (failure) {
      if (!(failure instanceof GuestError) || failure.code !== refusals.noApp) throw failure;
    }
  try {
    return await instance(await join(origin, app, credential));
  } catch (failure) {
    if (failure instanceof JoinError && failure.name === 'GoneError') await empty();
    throw failure;
  }
}

function settingsOf(start: Start, loaded: RuntimeFiles, files: Files | undefined, register?: Register): Settings {
  const { copy } = start;
  return {
    role: 'engine',
    store: files ? 'files' : 'memory',
    publicUrl: start.publicUrl,
    ...(start.keepPredicted && { keepPredicted: start.keepPredicted }),
    bundles: [...new Set([...loaded.bundles.keys(), ...loaded.rest])],
    checked: true,
    openDoor: true,
    pictureTime: start.pictureTime,
    memory: engineMemory,
    ...(copy && {
      app: copy.app,
      replica: {
        ...(copy.name && { name: copy.name }),
        vectors: 'q16' as const,
        pictures: copy.pictures,
        origin: copy.origin,
        ...(register && { register }),
      },
    }),
  };
}

function makeAnalysers(
  spares: Spares,
  start: Start,
  modules: Modules,
  loaded: RuntimeFiles,
  older: ReadonlyMap<string, Bundles>,
  log: (line: string) => void,
): { pool: Pool; films: Films } {
  const { bundles } = loaded;
  const settings: Settings = {
    role: 'analyser',
    store: 'memory',
    bundles: [...loaded.bundles.keys()],
    pictureTime: start.pictureTime,
    memory: analyserMemory,
    checked: true,
  };
  const analyser = { modules, bundles, older, settings };
  const films = new Films({
    make: async () => startDecoder(await spares.take(), { analyser }, startPatience),
    async module(memory) {
      const program = await loaded.later('ffmpreg.wasm');
      return program && WebAssembly.compile(withMemory(program, 2 * memory)); // more than a run may have, so that it shows
    },
    idle,
    log,
  });
  const pool = new Pool({
    make: async () => startAnalyser(await spares.take(), { analyser }, startPatience),
    hasSpare: () => spares.ready(),
    size: start.workers,
    least: start.copy ? 0 : 1, // what a copy shows was analysed at its origin for the most part
    patience: 2 * start.pictureTime + 1000, // an analysis ends itself when its time is over; who does not is ended
    idle,
    log,
  });
  return { pool, films };
}

/** Does calls for one who asks from afar: a page, another tab, a service worker. */
export class Desk {
  #running: EngineHandle;
  #post: (m: FromEngine, transfer?: ArrayBuffer[]) => void;
  #calls = new Map<number, AbortController>();
  #watch: Watch = (copy, offline) => this.#post({ copy, offline });

  constructor(running: EngineHandle, post: (m: FromEngine, transfer?: ArrayBuffer[]) => void) {
    this.#running = running;
    this.#post = post;
    running.watches.add(this.#watch);
  }

  async take(m: ToEngine): Promise<void> {
    if ('abort' in m) return this.#calls.get(m.abort)?.abort();
    if (!('id' in m)) return;
    const { id } = m;
    const stop = new AbortController();
    this.#calls.set(id, stop);
    try {
      if ('ask' in m)
        return this.#post({ id, value: this.#running.engine.ask(m.ask).slice() as Uint8Array<ArrayBuffer> });
      if ('sync' in m) return this.#post({ id, told: this.#sync(m.sync) });
      const { request, pictures } = m;
      const frames = m.frames && ((frames: FilmProgress<Answer>) => this.#post({ id, frames }));
      const files = m.files && new Map(m.files);
      const answer = await this.#running.engine.serve(request, stop.signal, { frames, pictures, files });
      this.#post({ id, answer }, [answer.body.buffer]);
    } catch (failure) {
      const { name, message } = failure as Error;
      this.#post({ id, failed: message, name });
    } finally {
      this.#calls.delete(id);
    }
  }

  #sync(what: Extract<ToEngine, { sync: string }>['sync']): CopyStatus | Digest | null {
    const { engine } = this.#running;
    if (!engine.copy) throw new Error('this runtime has no replica');
    if (what === 'status') return engine.copy.status();
    if (what === 'digest') return decodeDigest(engine.ask('digest'));
    engine.copy.offline(what === 'offline');
    return null;
  }

  /** Gives up what is under way: nobody waits for it any more. */
  leave(): void {
    this.#running.watches.delete(this.#watch);
    for (const stop of this.#calls.values()) stop.abort();
  }
}
