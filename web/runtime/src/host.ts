// The code of all workers: the worker with the engine, and the workers that analyse pictures. Both kinds run the same script. The first
// message selects the kind. worker.ts is that script in pages, and nodeworker.ts in Node.

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
  decodeSalvage,
  encodeQuestion,
  GuestError,
  type Pictures,
  type Request,
  type Result,
  refusals,
  type Salvaged,
  type Settings,
} from './messages.ts';
import { type Bundles, Networks } from './networks.ts';
import { JoinError, join, type Register } from './origin.ts';
import { type Analyser, Pool } from './pool.ts';
import type { Port } from './port.ts';
import { analysePicture, type ModuleNeed, missingModule, pictureTooLong, type StillHost } from './still.ts';
import { decodeDigest, hex } from './sync.ts';

/** The settings of an engine, in a form that can be sent between threads. */
export interface Start {
  base: string; // URL of the folder with the runtime's files
  store: 'private' | 'memory' | { folder: string };
  name: string; // name of the store
  workers: number;
  publicUrl: string;
  keepPredicted?: number; // seconds
  pictureTime: number; // milliseconds
  copy?: CopyStart; // set if the store's only application is a replica of an origin's
  salvage?: boolean; // opens a damaged store with the part that can be read
}

/** The services of the platform. */
export interface Platform {
  source(base: string): Source;
  files(start: Start): Promise<StoreFiles | undefined>; // undefined: the store is in memory
  spawn(): Port; // another worker with this script
}

/** The messages to an engine's worker. */
export type ToEngine =
  | { start: Start }
  | { id: number; request: Request; frames?: true; pictures?: Pictures; files?: [string, Blob][] }
  | { id: number; ask: string }
  | { id: number; rendition: Blob }
  | { id: number; sync: 'status' | 'digest' | 'offline' | 'online' }
  | { credential: number; value: string }
  | { credential: number; refused: string }
  | { abort: number }
  | { close: true };

/** The messages from an engine's worker. */
export type FromEngine =
  | { alive: true }
  | { progress: Progress }
  | { opened: RuntimeInfo }
  | { failed: string; name: string }
  | { id: number; answer: Answer }
  | { id: number; frames: FilmProgress<Answer> } // progress of a request with `frames: true`, before its answer
  | { id: number; value: Uint8Array<ArrayBuffer> }
  | { id: number; told: CopyStatus | Digest | null }
  | { id: number; failed: string; name: string }
  | { credential: number } // asks the page for a credential; the number identifies the question
  | { copy: CopyStatus; offline: boolean } // the replica's new status; offline: by the user's choice
  | { closed: true };

/** The facts about an open runtime. */
export interface RuntimeInfo {
  store: 'private' | 'memory' | 'folder';
  /** Whether this thread has the data open. Otherwise another tab's thread has the data and answers. */
  owner: boolean;
  copy: boolean;
  /** The result of opening the store with `salvage`. */
  salvaged: Salvaged | undefined;
}

/** The messages to and from an analysing worker. */
export type ToAnalyser =
  | { analyser: { modules: Modules; bundles: Bundles; older: ReadonlyMap<string, Bundles>; settings: Settings } }
  | { job: Uint8Array<ArrayBuffer> }
  | { film: FilmTask }
  | { module: WebAssembly.Module | Result }; // answer to `need`
export type FromAnalyser =
  | { alive: true }
  | { ready: true }
  | { result: Uint8Array<ArrayBuffer> }
  | { error: Result }
  | { need: ModuleNeed } // a module that the picture needs, before its result
  | { decoded: true } // the modules have decoded the picture
  | DecoderMessage
  | { failed: string };

/**
 * Returns the functions by which a guest reads the files of the current network and of older networks. Before a guest reads an older
 * network, it lists its files by the empty name. `usedBases` then gets the base of that network, in hex.
 */
function networksOf(
  own: Bundles,
  older: ReadonlyMap<string, Bundles>,
  usedBases = new Set<string>(),
): Pick<GuestServices, 'bundle' | 'older'> {
  return {
    bundle: (name) => own.get(name),
    older(base, name) {
      const bundles = older.get(hex(base));
      if (name || !bundles) return bundles?.get(name);
      usedBases.add(hex(base));
      return new TextEncoder().encode([...bundles.keys()].join('\n'));
    },
  };
}

/** Returns the message handler of an analysing worker. It answers through `port`. */
export function analyser(port: Port): (message: ToAnalyser) => Promise<void> {
  let guest: Guest | undefined;
  let provide = (_: WebAssembly.Module | Result) => {}; // passes a module to the picture that needs it
  const host: StillHost = {
    module: (need) =>
      new Promise((resolve) => {
        provide = resolve;
        port.post({ need } satisfies FromAnalyser);
      }),
    onDecoded: () => port.post({ decoded: true } satisfies FromAnalyser),
    now: () => performance.now(),
  };
  return async (message) => {
    if ('module' in message) return provide(message.module);
    try {
      if ('analyser' in message) {
        const { modules, bundles, older, settings } = message.analyser;
        guest = await Guest.open(modules, { ...system, ...networksOf(bundles, older) }, settings);
        bundles.clear(); // frees memory: the guest has read them
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
      const result = await analysePicture(guest, message.job, host);
      if (result instanceof Uint8Array) port.post({ result } satisfies FromAnalyser, [result.buffer]);
      else port.post({ error: result } satisfies FromAnalyser);
    } catch (failure) {
      port.post({ failed: String(failure) } satisfies FromAnalyser);
    }
  };
}

/**
 * Starts workers. It holds one idle worker in reserve, whose script is loaded, because a page that has lost its network cannot load the
 * script.
 */
class Spares {
  #platform: Platform;
  #next: Promise<Port | undefined> | undefined; // the reserve; resolves to undefined if its script cannot be loaded

  constructor(platform: Platform) {
    this.#platform = platform;
  }

  /** Starts a reserve worker if there is none, and reports whether one has loaded its script. */
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

  /** Returns the reserve worker, or a new worker if the reserve could not be loaded. It starts the next reserve. */
  async take(): Promise<Port> {
    const next = this.#next;
    this.#next = undefined;
    void this.ready(); // before the await, so that a `close` during the await closes the next reserve too
    return (await next) ?? this.#platform.spawn();
  }

  close(): void {
    void this.#next?.then((port) => port?.close());
  }
}

/** Loads the decoding modules, and holds each until `idle` milliseconds after the last request for any of them. */
class Decoders {
  #later: RuntimeFiles['later'];
  #log: (line: string) => void;
  #modules = new Map<string, Promise<WebAssembly.Module | undefined>>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(later: RuntimeFiles['later'], log: (line: string) => void) {
    this.#later = later;
    this.#log = log;
  }

  /** Returns a compiled module for runs with at most `memory` bytes. It returns undefined if the server does not have the module. */
  load(name: string, memory: number): Promise<WebAssembly.Module | undefined> {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#modules.clear(), idle);
    (this.#timer as { unref?: () => void }).unref?.();
    let module = this.#modules.get(name);
    if (!module) {
      module = this.#compile(name, memory);
      this.#modules.set(name, module);
      module.catch(() => this.#modules.delete(name));
    }
    return module;
  }

  /** FFmpeg may have twice its memory, so that runCommand can notice a run above `memory`. libjxl calls no function of WASI meanwhile. */
  async #compile(name: string, memory: number): Promise<WebAssembly.Module | undefined> {
    const program = await this.#later(name);
    return program && WebAssembly.compile(withMemory(program, name === filmModule ? 2 * memory : memory));
  }

  /** Sends a worker the module that it needs. `allow` gets the time for the load and then for the run, with the result after that time. */
  async provide(port: Port, { name, memory, left, time }: ModuleNeed, allow: Allow): Promise<void> {
    allow(loadTimeout, missingModule(name, true));
    const module = await this.load(name, memory).then(
      (found) => found ?? missingModule(name, false),
      (failure) => {
        this.#log(`the decoding module ${name} cannot be loaded: ${failure}`);
        return missingModule(name, true);
      },
    );
    allow(left, pictureTooLong(time));
    port.post({ module } satisfies ToAnalyser);
  }
}

/** Replaces the time for the rest of a picture, in milliseconds, and the result after that time. */
type Allow = Parameters<Analyser['analyse']>[1];

/**
 * Starts an analysing worker behind `port` and returns it once it is ready. The start message copies `bundles` into the worker. If the
 * worker fails or takes longer than `timeout` milliseconds, startAnalyser closes the port and rejects.
 */
async function startAnalyser(port: Port, start: ToAnalyser, decoders: Decoders, timeout: number): Promise<Analyser> {
  let settle: { resolve: (m: FromAnalyser) => void; reject: (e: Error) => void } | undefined;
  let allow: Allow = () => {};
  port.onmessage = (m: FromAnalyser) => {
    if ('failed' in m) settle?.reject(new Error(m.failed));
    else if ('need' in m) void decoders.provide(port, m.need, allow);
    else if ('decoded' in m) allow(0);
    else if (!('alive' in m)) settle?.resolve(m);
  };
  port.onerror = (failure) => settle?.reject(failure);
  const send = (m: ToAnalyser, transfer?: ArrayBuffer[]) =>
    new Promise<FromAnalyser>((resolve, reject) => {
      settle = { resolve, reject };
      port.post(m, transfer);
    });
  const timer = setTimeout(() => settle?.reject(new Error('the worker did not start in time')), timeout);
  try {
    await send(start);
  } catch (failure) {
    port.close();
    throw failure;
  } finally {
    clearTimeout(timer);
  }
  return {
    async analyse(job, allowed) {
      allow = allowed;
      const m = (await send({ job }, [job.buffer])) as { result: Uint8Array } | { error: Result };
      return 'error' in m ? m.error : m.result;
    },
    close: () => port.close(),
  };
}

/** Starts an analysing worker that decodes videos. */
async function startDecoder(port: Port, start: ToAnalyser, decoders: Decoders, timeout: number): Promise<Decoder> {
  await startAnalyser(port, start, decoders, timeout);
  return {
    run: (task, onFrame) =>
      new Promise((resolve, reject) => {
        port.onmessage = (m: FromAnalyser) => {
          if ('frame' in m) onFrame(m.frame, m.of);
          else if ('film' in m) resolve(m.film);
          else if ('result' in m) resolve(decodeResult(m.result));
          else if ('error' in m) resolve(m.error);
          else if ('need' in m)
            void decoders.provide(port, m.need, () => {}); // the video's time limit applies
          else if ('failed' in m) reject(new Error(m.failed));
        };
        port.onerror = reject;
        port.post(task satisfies ToAnalyser, 'job' in task ? [task.job.buffer] : []);
      }),
    close: () => port.close(),
  };
}

// Soft limits of the guests' garbage collectors, in bytes: field `memory` of the settings, wasm/README.md.
const engineMemory = 288 << 20;
const analyserMemory = 128 << 20;
const startTimeout = 60_000; // ms that a worker's start may take: enough for a slow phone
const loadTimeout = 300_000; // ms that the download and the compilation of a decoding module may take
const filmModule = 'ffmpreg.wasm';
const idle = 60_000; // ms without work after which a worker is closed

/** Called with the replica's new status. `offline`: whether the user has taken the replica offline. */
type Watch = (copy: CopyStatus, offline: boolean) => void;

/** An engine with its workers and its files. */
export interface EngineHandle {
  engine: Engine;
  store: RuntimeInfo['store'];
  salvaged: Salvaged | undefined;
  watches: Set<Watch>;
  close(): Promise<void>;
}

/** Returns the facts about a runtime for the thread that has it open. */
export function infoOf({ store, engine, salvaged }: EngineHandle): RuntimeInfo {
  return { store, owner: true, copy: !!engine.copy, salvaged };
}

const credentialTimeout = 20_000; // ms in which the page must answer the question for a credential

/** Asks the page for credentials, and passes its answers to the callers that wait. */
export class Asker {
  #post: (m: FromEngine) => void;
  #next = 1;
  #pending = new Map<
    number,
    { resolve: (value: string) => void; reject: (reason: Error) => void; clearTimer: () => void }
  >();

  constructor(post: (m: FromEngine) => void) {
    this.#post = post;
  }

  ask(): Promise<string> {
    return new Promise((resolve, reject) => {
      const id = this.#next++;
      const timer = setTimeout(
        () => this.take({ credential: id, refused: 'the page does not say in time' }),
        credentialTimeout,
      );
      const clearTimer = () => clearTimeout(timer);
      this.#pending.set(id, { resolve, reject, clearTimer });
      this.#post({ credential: id });
    });
  }

  take(m: Extract<ToEngine, { credential: number }>): void {
    const pending = this.#pending.get(m.credential);
    this.#pending.delete(m.credential);
    pending?.clearTimer();
    if ('value' in m) pending?.resolve(m.value);
    else pending?.reject(new Error(m.refused));
  }
}

/** Loads the runtime's files, opens the store and starts the engine. For a new replica it asks the origin for the app record. */
export async function run(
  platform: Platform,
  start: Start,
  progress: (p: Progress) => void,
  asker: Asker,
): Promise<EngineHandle> {
  const log = (line: string) => system.log(4, line);
  // The browser loads a worker's script through this thread, which is busy once the engine starts. So the reserve worker is loaded first.
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
    const usedBases = new Set<string>();
    const own = networksOf(loaded.bundles, older, usedBases);
    const loadRest = () => loaded.loadRest().catch(() => {}); // ignores failures: `bundle` loads a file again when a training needs it
    const bundle = (name: string) => {
      const data = own.bundle(name);
      if (!data && loaded.rest.includes(name)) void loadRest(); // the guest asks for the file again later
      return data;
    };
    const services: GuestServices = { ...system, ...own, bundle, ...(files && { files }) };
    let base = new Uint8Array();
    const settle = async () =>
      networks
        ?.settle(base, usedBases)
        .catch((failure) => log(`the network is not stored with the inputs: ${failure}`));
    let salvaged: Salvaged | undefined;
    const instance = async (register?: Register) => {
      // An instance that replaces the first one does not salvage: damage of an open store must be reported.
      const salvage = start.salvage && !salvaged;
      const guest = await Guest.open(modules, services, { ...settingsOf(start, loaded, files, register), salvage });
      if (salvage) salvaged = decodeSalvage(decodeReply(guest.call('ask', encodeQuestion('salvage'))));
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
    const open = copy ? () => openCopy(start, copy, instance, files, empty, credential) : () => instance();
    const onChange: Watch = (status, offline) => {
      for (const watch of watches) watch(status, offline);
    };
    const onPurge = (keepStore: boolean) => {
      if (!keepStore) emptied = empty().catch((failure) => log(`the store is not emptied: ${failure}`));
    };
    const analysing = pool.start();
    const replicaOptions = copy && { copy: { ...copy, credential, onChange }, onPurge };
    const engine = await Engine.open({ open, ...analysts, log, ...replicaOptions });
    await analysing;
    void loadRest().then(settle);
    const store = !files ? 'memory' : start.store === 'private' ? 'private' : 'folder';
    const close = async () => {
      await engine.close();
      await emptied;
      spares.close();
      files?.close();
    };
    return { engine, store, salvaged, watches, close };
  } catch (failure) {
    spares.close();
    files?.close();
    throw failure;
  }
}

/**
 * Opens an instance for a replica. If the store does not have the application yet, openCopy first gets the app record from the origin. If
 * the origin has deleted the application, openCopy empties the store and rejects. It rejects if a salvage has left nothing of the application.
 */
async function openCopy(
  { salvage }: Start,
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
      if (salvage) throw new GuestError(refusals.damaged, failure.message);
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
  const decoders = new Decoders(loaded.later, log);
  const films = new Films({
    make: async () => startDecoder(await spares.take(), { analyser }, decoders, startTimeout),
    module: (memory) => decoders.load(filmModule, memory),
    idle,
    log,
  });
  const pool = new Pool({
    make: async () => startAnalyser(await spares.take(), { analyser }, decoders, startTimeout),
    hasSpare: () => spares.ready(),
    size: start.workers,
    minSize: start.copy ? 0 : 1, // the origin has analysed most pictures of a replica
    timeout: 2 * start.pictureTime + 1000, // an analysis ends itself after pictureTime; the pool closes a worker that does not
    idle,
    log,
  });
  return { pool, films };
}

/** Answers the messages of one client in another thread: a page, another tab or a service worker. */
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
      if ('rendition' in m)
        return this.#post({ id, value: await this.#running.engine.rendition(m.rendition, stop.signal) });
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

  #sync(request: Extract<ToEngine, { sync: string }>['sync']): CopyStatus | Digest | null {
    const { engine } = this.#running;
    if (!engine.copy) throw new Error('this runtime has no replica');
    if (request === 'status') return engine.copy.status();
    if (request === 'digest') return decodeDigest(engine.ask('digest'));
    engine.copy.offline(request === 'offline');
    return null;
  }

  /** Aborts the client's calls and stops sending it the status. The owner calls it when the client has ended. */
  leave(): void {
    this.#running.watches.delete(this.#watch);
    for (const stop of this.#calls.values()) stop.abort();
  }
}
