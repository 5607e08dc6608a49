// Loads the parts of a runtime from their server: the module, its kernels and the bundles, as manifest.json in the same folder lists them.
//
//     {"format": 1, "files": [
//       {"name": "guest.wasm", "url": "guest-0f3a….wasm", "size": 9000000, "sha256": "0f3a…"},
//       {"name": "kernels.wasm", …}, {"name": "kernels-relaxed.wasm", …},
//       {"name": "bundles", "url": "bundles-77c1….bin", "size": 1200000, "sha256": "77c1…",
//        "parts": [{"name": "general-v1.3/manifest.json", "at": 0, "size": 3339}, …]},
//       {"name": "general-v1.3/network.plan", …}],
//      "later": [{"name": "general-v1.3/background.f16", …}, {"name": "ffmpreg.wasm", …}]}
//
// Files in `later` are loaded at the first need. Those of bundles are also loaded once the runtime is open, for a time without a network.
// A device loads one of the two modules of kernels: the relaxed one if relaxed.ts finds its instruction exact.
//
// The loader checks each file against its hash. A page then stores the file in the Cache Storage, under a name that contains the hash. A
// start with stored files requests only the manifest. Offline it uses the stored manifest.

import { type Dot, relaxedDot } from './relaxed.ts';

/** The progress of a load. Numbers of bytes refer to uncompressed files. */
export interface Progress {
  /** load: files are being loaded · start: the module is being started · wait: another tab has the store open · ready */
  stage: 'load' | 'start' | 'wait' | 'ready';
  /**
   * The file that `loaded` and `total` are about: `guest.wasm`, `kernels.wasm` or `kernels-relaxed.wasm`, `bundles`, or a bundle's file.
   */
  file?: string;
  loaded?: number;
  total?: number;
  /** The bytes of all files. */
  allLoaded?: number;
  allTotal?: number;
}

export interface Entry {
  name: string;
  url: string;
  size: number;
  sha256: string;
  parts?: { name: string; at: number; size: number }[];
}

/** The files that a runtime needs to start a guest. */
export interface RuntimeFiles {
  guest: WebAssembly.Module;
  kernels: Uint8Array<ArrayBuffer>;
  bundles: Map<string, Uint8Array<ArrayBuffer>>;
  /** Names of the bundles' files that the start does not load. `bundles` has each of them once `loadRest` has loaded it. */
  rest: readonly string[];
  /** Loads the files of `rest` that `bundles` does not have. It rejects if one cannot be loaded now. */
  loadRest(): Promise<void>;
  /** Loads a file of the manifest's `later`. It returns undefined if the manifest does not list the file. */
  later(name: string): Promise<Uint8Array<ArrayBuffer> | undefined>;
}

/** A place to load files from: a web server, or a folder in Node. */
export interface Source {
  manifest(signal?: AbortSignal): Promise<unknown>;
  /** Loads a file, and calls `onBytes` with the number of bytes of each piece that arrives. */
  file(entry: Entry, onBytes: (n: number) => void, signal?: AbortSignal): Promise<LoadedFile>;
  /**
   * Compiles a checked file. If a browser compiles a module from a response of the network or of its HTTP cache, it caches the code. Later
   * starts of the module are then several times as fast.
   */
  compile?(entry: Entry, file: LoadedFile): Promise<WebAssembly.Module>;
  /** Deletes stored files except for these. The loader calls it when all files are checked. */
  deleteOthers?(urls: string[]): Promise<void>;
}

/** A loaded file. */
export interface LoadedFile {
  bytes(): Promise<Uint8Array<ArrayBuffer>>;
  /** Whether the file was already checked against its hash: it is a stored file. */
  isChecked: boolean;
  /** Stores the file. The loader calls it when it has checked the file. */
  store?: () => Promise<void>;
  /** Compiles the file from its response. For a download the compilation starts when the response starts. */
  compile?: () => Promise<WebAssembly.Module>;
}

/** The runtime's files cannot be loaded from their server: a file is missing, or it is not the file of the manifest. */
export class LoadError extends Error {
  override name = 'LoadError';
}

/** Loads and checks the files that a runtime needs to start. It rejects with a LoadError if one is wrong. */
export async function load(from: Source, progress: (p: Progress) => void, signal?: AbortSignal): Promise<RuntimeFiles> {
  const { files: listed, later } = parse(await from.manifest(signal));
  const entries = selectKernels(listed, relaxedDot());
  const sum = { loaded: 0, total: entries.reduce((n, e) => n + e.size, 0) };
  const files = await Promise.all(
    entries.map(async (entry) => {
      let loaded = 0;
      const report = (n: number) => {
        loaded += n;
        sum.loaded += n;
        const { name: file, size: total } = entry;
        progress({ stage: 'load', file, loaded, total, allLoaded: sum.loaded, allTotal: sum.total });
      };
      return { entry, file: await check(entry, await from.file(entry, report, signal)) };
    }),
  );
  await from.deleteOthers?.([...entries, ...later].map((e) => e.url));
  const started = await start(from, files);
  const rest = later.flatMap(({ name }) => (name.includes('/') ? name : []));
  const loadLater = async (name: string) => {
    const entry = later.find((e) => e.name === name);
    return entry && (await check(entry, await from.file(entry, () => {}))).bytes();
  };
  let loading: Promise<void> | undefined;
  const loadAll = async () => {
    for (const name of rest) {
      const data = started.bundles.get(name) ?? (await loadLater(name));
      if (data) started.bundles.set(name, data);
    }
  };
  const loadRest = () => {
    loading ??= loadAll().finally(() => {
      loading = undefined;
    });
    return loading;
  };
  return { ...started, rest, loadRest, later: loadLater };
}

const kernels = 'kernels.wasm';
const relaxed = 'kernels-relaxed.wasm';

/** Returns the files without the module of kernels that an engine with this dot product does not use. */
export function selectKernels(files: Entry[], dot: Dot | undefined): Entry[] {
  const best = dot && files.some((e) => e.name === relaxed) ? relaxed : kernels;
  return files.filter((e) => e.name === best || (e.name !== relaxed && e.name !== kernels));
}

async function check(entry: Entry, file: LoadedFile): Promise<LoadedFile> {
  if (file.isChecked) return file;
  const data = await file.bytes();
  if (data.length !== entry.size || (await sha256(data)) !== entry.sha256)
    throw new LoadError(`${entry.url} is not the file that manifest.json names`);
  await file.store?.();
  return file;
}

async function start(
  from: Source,
  files: { entry: Entry; file: LoadedFile }[],
): Promise<Pick<RuntimeFiles, 'guest' | 'kernels' | 'bundles'>> {
  const bundles = new Map<string, Uint8Array<ArrayBuffer>>();
  const found: Partial<RuntimeFiles> = {};
  await Promise.all(
    files.map(async ({ entry, file }) => {
      if (entry.name === 'guest.wasm') {
        found.guest = await (from.compile?.(entry, file) ?? WebAssembly.compile(await file.bytes()));
        return;
      }
      const data = await file.bytes();
      if (entry.name === kernels || entry.name === relaxed) found.kernels = data;
      else if (!entry.parts) bundles.set(entry.name, data);
      for (const p of entry.parts ?? []) bundles.set(p.name, data.subarray(p.at, p.at + p.size));
    }),
  );
  if (!found.guest || !found.kernels) throw new LoadError('manifest.json names no module');
  return { guest: found.guest, kernels: found.kernels, bundles };
}

function parse(manifest: unknown): { files: Entry[]; later: Entry[] } {
  const m = manifest as { format?: number; files?: Entry[]; later?: Entry[] };
  if (m?.format !== 1 || !Array.isArray(m.files)) throw new LoadError('manifest.json has an unknown format');
  return { files: m.files, later: m.later ?? [] };
}

/** Returns the SHA-256 of the data in hex. */
export async function sha256(data: BufferSource): Promise<string> {
  const sum = new Uint8Array(await crypto.subtle.digest('SHA-256', data));
  return Array.from(sum, (b) => b.toString(16).padStart(2, '0')).join('');
}

function unhex(text: string): number[] {
  return Array.from(text.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
}

const cacheName = 'sightline-runtime';
const manifestTimeout = 3_000; // ms that the manifest's server has to answer, if a stored manifest exists

/** Returns the source of the files on a web server, below `base`. */
export function served(base: URL): Source {
  const at = (url: string) => new URL(url, base).href;
  const openedCache = globalThis.caches?.open(cacheName).catch(() => undefined); // some private windows have no Cache Storage
  const manifest = at('manifest.json');
  return {
    async manifest(signal) {
      const cache = await openedCache;
      const old = await cache?.match(manifest);
      try {
        const limits = [...(old ? [AbortSignal.timeout(manifestTimeout)] : []), ...(signal ? [signal] : [])];
        const response = await get(manifest, AbortSignal.any(limits), 'no-cache');
        await cache?.put(manifest, response.clone());
        return await response.json();
      } catch (failure) {
        signal?.throwIfAborted();
        if (!old) throw failure;
        return await old.json(); // without an answer from the network, the stored files still work
      }
    },
    async file({ name, url, sha256, size }, onBytes, signal) {
      const cache = await openedCache;
      const key = `${at(url)}?${sha256}`;
      const old = await cache?.match(key);
      if (old) {
        onBytes(size);
        return {
          isChecked: true,
          bytes: async () => new Uint8Array(await old.clone().arrayBuffer()),
          compile: () => WebAssembly.compileStreaming(old.clone()),
        };
      }
      const response = await get(at(url), signal, 'default');
      const copy = response.clone();
      const compiled = name === 'guest.wasm' ? WebAssembly.compileStreaming(response) : undefined;
      compiled?.catch(() => {}); // `read` below reports the failure
      const data = await read(copy, onBytes);
      const type = response.headers.get('Content-Type') ?? 'application/octet-stream';
      const store = async () => {
        // If the cache has no room for the file, the next start downloads the file again.
        await cache?.put(key, new Response(data, { headers: { 'Content-Type': type } })).catch(() => {});
      };
      return { isChecked: false, bytes: async () => data, store, ...(compiled && { compile: () => compiled }) };
    },
    async compile({ url, sha256 }, file) {
      const integrity = `sha256-${btoa(String.fromCharCode(...unhex(sha256)))}`;
      const fetchCached = () => fetch(at(url), { cache: 'only-if-cached', mode: 'same-origin', integrity });
      const attempts = [file.isChecked && (() => WebAssembly.compileStreaming(fetchCached())), file.compile];
      for (const attempt of attempts) {
        try {
          if (attempt) return await attempt();
        } catch {
          // The HTTP cache no longer has it, or a server sends it with another type.
        }
      }
      return WebAssembly.compile(await file.bytes());
    },
    async deleteOthers(urls) {
      const cache = await openedCache;
      const currentUrls = new Set(urls.map(at));
      for (const { url } of (await cache?.keys()) ?? [])
        if (url !== manifest && url.startsWith(base.href) && !currentUrls.has(url.split('?')[0] as string))
          await cache?.delete(url);
    },
  };
}

async function get(url: string, signal: AbortSignal | undefined, cache: RequestCache): Promise<Response> {
  const response = await fetch(url, { cache, credentials: 'same-origin', ...(signal && { signal }) });
  if (!response.ok) throw new LoadError(`${url}: ${response.status} ${response.statusText}`);
  return response;
}

async function read(response: Response, onBytes: (n: number) => void): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  const reader = response.body?.getReader();
  for (let r = await reader?.read(); r && !r.done; r = await reader?.read()) {
    pieces.push(r.value);
    size += r.value.length;
    onBytes(r.value.length);
  }
  const body = new Uint8Array(size);
  let at = 0;
  for (const p of pieces) {
    body.set(p, at);
    at += p.length;
  }
  return body;
}
