// One instance of the module, and the services that its host provides. The contract is wasm/README.md.

import { codeOf, type Files, storeCodes } from './files.ts';
import { checkDone, encodeSettings, type Settings } from './messages.ts';
import { forwarder, functionsOf } from './shape.ts';
import { wasi } from './wasi.ts';

type Fn = (...args: never[]) => unknown;

/** The version of the ABI that this host supports. */
const abi = 1;

/** The number of bytes of memory that every instance soon needs. */
const firstRoom = 48 << 20;

/** The services of the host that a guest may call. */
export interface GuestServices {
  now(): bigint; // nanoseconds since 1970
  random(p: Uint8Array): void;
  /** level: −4 debug, 0 info, 4 warn, 8 error. */
  log(level: number, line: string): void;
  /** Returns a file of the bundles, or undefined if it does not exist. */
  bundle(name: string): Uint8Array | undefined;
  /** Returns a file of the older network with this base, or the list of its files, one name a line, for the empty name. */
  older?(base: Uint8Array, name: string): Uint8Array | undefined;
  /** The files of a store of kind `files`. */
  files?: Files;
  /**
   * Returns further functions of module `sightline`, such as the functions of a store of kind `lent`. `memory` returns the current memory.
   */
  others?(memory: () => Uint8Array): Record<string, Fn>;
}

/** The clock, the random numbers and the console of this browser or of Node. */
export const system: Pick<GuestServices, 'now' | 'random' | 'log'> = {
  now: () => BigInt(Date.now()) * 1_000_000n,
  random: (p) => {
    const chunk = new Uint8Array(Math.min(p.length, 65536)); // getRandomValues fills at most 65,536 bytes, not in wasm memory
    for (let n = 0; n < p.length; n += chunk.length) {
      crypto.getRandomValues(chunk);
      p.set(chunk.subarray(0, p.length - n), n);
    }
  },
  log: (level, line) => (level >= 8 ? console.error(line) : level >= 4 ? console.warn(line) : console.debug(line)),
};

/** The modules of a guest, compiled once and shared by all its instances, in any worker. */
export interface Modules {
  guest: WebAssembly.Module;
  kernels?: WebAssembly.Module;
  forwarder?: WebAssembly.Module;
  /** The names of the forwarder's functions, in the order of its table. */
  forwarded: string[];
}

/** Compiles the kernels, and the module unless it is compiled. Without `kernels` the module must contain its own. */
export async function compile(
  guest: BufferSource | WebAssembly.Module,
  kernels?: Uint8Array<ArrayBuffer>,
): Promise<Modules> {
  const module = guest instanceof WebAssembly.Module ? guest : await WebAssembly.compile(guest);
  if (!kernels) return { guest: module, forwarded: [] };
  const imports = WebAssembly.Module.imports(module).filter((i) => i.module === 'kernel');
  const kernelFunctions = functionsOf(kernels).filter((f) => imports.some((i) => i.name === f.name));
  const [compiled, forwarderModule] = await Promise.all(
    [kernels, forwarder(kernelFunctions)].map((m) => WebAssembly.compile(m)),
  );
  return {
    guest: module,
    kernels: compiled as WebAssembly.Module,
    forwarder: forwarderModule as WebAssembly.Module,
    forwarded: kernelFunctions.map((f) => f.name),
  };
}

interface Exports {
  memory: WebAssembly.Memory;
  _initialize(): void;
  abi(): number;
  reserve(n: number): number;
}

/** The exports that take an envelope and return one. */
export type Call = 'open' | 'serve' | 'resume' | 'step' | 'analyse' | 'ask' | 'sync';

/** The instance trapped, exited or broke the contract. It can no longer be used. */
export class DeadError extends Error {
  override name = 'DeadError';
}

/** An instance of the module. Its calls are synchronous and compute in the caller's thread. */
export class Guest {
  /** Why the instance can no longer be used; undefined if it can. */
  dead: DeadError | undefined;

  #services: GuestServices;
  #exports!: Exports;
  #bytes = new Uint8Array();
  #panic: string | undefined; // why the program panicked

  private constructor(services: GuestServices) {
    this.#services = services;
  }

  /** Creates an instance. The caller's first call must be `open`. */
  static async start(modules: Modules, services: GuestServices): Promise<Guest> {
    const g = new Guest(services);
    await g.#instantiate(modules);
    return g;
  }

  /** Creates an instance and opens it with the settings. It rejects with a GuestError if the guest refuses them. */
  static async open(modules: Modules, services: GuestServices, settings: Settings): Promise<Guest> {
    const g = await Guest.start(modules, services);
    checkDone(g.call('open', encodeSettings(settings)));
    return g;
  }

  async #instantiate(m: Modules): Promise<void> {
    const forwarderInstance = m.forwarder && (await WebAssembly.instantiate(m.forwarder));
    const imports = WebAssembly.Module.imports(m.guest);
    const instance = await WebAssembly.instantiate(m.guest, this.#imports(imports, forwarderInstance?.exports ?? {}));
    this.#exports = instance.exports as unknown as Exports;
    if (m.kernels && forwarderInstance) await this.#bind(m, forwarderInstance);
    this.#grow();
    this.#live(() => this.#exports._initialize());
    const version = this.#live(() => this.#exports.abi());
    if (version !== abi) throw new DeadError(`the module speaks version ${version} of the ABI, want ${abi}`);
  }

  /**
   * Grows the guest's memory once, for the data that the guest will read, because the browser collects garbage each time the memory grows.
   * Memory that the guest has not written to costs nothing.
   */
  #grow(): void {
    const { memory } = this.#exports;
    const { files } = this.#services;
    try {
      const data = files ? Math.max(files.size(0), files.size(1)) : 0;
      const pages = Math.ceil((firstRoom + 1.25 * data - memory.buffer.byteLength) / 65536);
      if (pages > 0) memory.grow(pages);
    } catch {
      // The device has less memory, or the size of the files is unknown. The guest then grows its memory when it needs more.
    }
  }

  /** Instantiates the kernels on the guest's memory, and puts their functions into the forwarder's table, through which the guest calls. */
  async #bind(m: Modules, forwarderInstance: WebAssembly.Instance): Promise<void> {
    const kernels = m.kernels as WebAssembly.Module;
    const importObject: WebAssembly.Imports = {};
    for (const i of WebAssembly.Module.imports(kernels))
      if (i.kind === 'memory') importObject[i.module] = { ...importObject[i.module], [i.name]: this.#exports.memory };
    const exports = (await WebAssembly.instantiate(kernels, importObject)).exports as Record<string, Fn>;
    const table = forwarderInstance.exports.table as WebAssembly.Table;
    for (const [at, name] of m.forwarded.entries()) table.set(at, exports[name]);
  }

  #imports(descriptors: WebAssembly.ModuleImportDescriptor[], kernels: WebAssembly.Exports): WebAssembly.Imports {
    const sightline = { ...this.#functions(), ...this.#services.others?.(() => this.#memory()) };
    const system = wasi({
      bytes: () => this.#memory(),
      view: () => this.#view(),
      random: (p) => this.#services.random(p),
      line: (text) => {
        if (/^(panic|fatal error|runtime):/.test(text)) this.#panic ??= text;
        this.#services.log(4, text);
      },
    });
    const all: Record<string, Record<string, WebAssembly.ImportValue>> = {};
    for (const i of descriptors) {
      const from = { sightline, kernel: kernels as Record<string, Fn>, wasi_snapshot_preview1: system }[i.module];
      const value = from?.[i.name] ?? missingImport(i);
      all[i.module] = { ...all[i.module], [i.name]: value };
    }
    return all;
  }

  /** Returns the current view of the guest's memory. A view becomes invalid when the memory grows. */
  #memory(): Uint8Array {
    const { buffer } = this.#exports.memory;
    if (this.#bytes.buffer !== buffer) this.#bytes = new Uint8Array(buffer);
    return this.#bytes;
  }

  #view(): DataView {
    return new DataView(this.#exports.memory.buffer);
  }

  /** Returns a view of a range of the guest's memory. A range outside the memory ends the instance. */
  #range(at: number, n: number): Uint8Array {
    const memory = this.#memory();
    const [from, to] = [at >>> 0, (at >>> 0) + (n >>> 0)];
    if (to > memory.length) throw new DeadError('a range outside the memory');
    return memory.subarray(from, to);
  }

  #text(at: number, n: number): string {
    return new TextDecoder().decode(this.#range(at, n));
  }

  #fill(from: Uint8Array | undefined, dst: number, cap: number): bigint {
    if (!from) return BigInt(-storeCodes.notFound);
    if (from.length <= cap >>> 0) this.#range(dst, from.length).set(from);
    return BigInt(from.length);
  }

  /** Returns the imports of module `sightline`, except for the functions of a host's store. */
  #functions(): Record<string, Fn> {
    const services = this.#services;
    const files = <T>(access: (f: Files) => T, fail: (code: number) => T): T => {
      if (!services.files) return fail(storeCodes.closed);
      try {
        return access(services.files);
      } catch (failure) {
        if (failure instanceof DeadError) throw failure;
        services.log(4, `store: ${failure}`);
        return fail(codeOf(failure));
      }
    };
    const statusOf = (access: (f: Files) => void) =>
      files(
        (f) => {
          access(f);
          return 0;
        },
        (code) => code,
      );
    return {
      now: () => services.now(),
      random: (dst: number, n: number) => services.random(this.#range(dst, n)),
      log: (level: number, at: number, n: number) => services.log(level, this.#text(at, n)),
      bundle: (at: number, n: number, dst: number, cap: number) =>
        this.#fill(services.bundle(this.#text(at, n)), dst, cap),
      older: (base: number, at: number, n: number, dst: number, cap: number) =>
        this.#fill(services.older?.(this.#range(base, 32).slice(), this.#text(at, n)), dst, cap),
      file_size: (file: number) =>
        files(
          (f) => BigInt(f.size(file)),
          (code) => BigInt(-code),
        ),
      file_read: (file: number, offset: bigint, dst: number, n: number) =>
        statusOf((f) => f.read(file, Number(offset), this.#range(dst, n))),
      file_write: (file: number, offset: bigint, src: number, n: number) =>
        statusOf((f) => f.write(file, Number(offset), this.#range(src, n))),
      file_truncate: (file: number, size: bigint) => statusOf((f) => f.truncate(file, Number(size))),
      file_sync: (file: number) => statusOf((f) => f.sync(file)),
    };
  }

  /** Runs code of the guest. An exception ends the instance and is thrown as a DeadError. */
  #live<T>(code: () => T): T {
    if (this.dead) throw this.dead;
    try {
      return code();
    } catch (failure) {
      this.dead =
        failure instanceof DeadError ? failure : new DeadError(this.#panic ?? String(failure), { cause: failure });
      throw this.dead;
    }
  }

  /** Calls an export with an envelope. `call` copies the argument and the answer, so the caller owns both. */
  call(name: Call, argument: Uint8Array): Uint8Array<ArrayBuffer> {
    return this.#live(() => {
      const at = this.#exports.reserve(argument.length);
      this.#range(at, argument.length).set(argument);
      const fn = (this.#exports as unknown as Record<Call, (n: number) => bigint>)[name];
      const answer = BigInt.asUintN(64, fn(argument.length));
      return this.#range(Number(answer >> 32n), Number(answer & 0xffff_ffffn)).slice() as Uint8Array<ArrayBuffer>;
    });
  }

  /** The size of the guest's memory in bytes. It never shrinks. */
  get memory(): number {
    return this.#exports.memory.buffer.byteLength;
  }
}

/** The imports that return an i64: they fill a buffer or open something. */
const i64Imports = /^(kv_get|kv_scan|kv_next|picture_lookup|picture_get|register_seq|token_issue|token_read|count)$/;
/** The imports that return an i32. */
const i32Imports =
  /^(kv_snapshot|kv_apply|kv_commit|kv_room|kv_compact|picture_(add|release|drop|has|put)|register_take)$/;

/**
 * Returns the function for an import that this host does not implement: a function of a host's store, or an optional kernel. An unknown
 * import, as of a newer module, ends the instance when the guest calls it.
 */
function missingImport(i: WebAssembly.ModuleImportDescriptor): Fn {
  if (i.module === 'sightline' && i64Imports.test(i.name)) return () => BigInt(-storeCodes.another);
  if (i.module === 'sightline' && i32Imports.test(i.name)) return () => storeCodes.another;
  if (i.module === 'kernel' && i.name === 'decode') return () => -1n; // the guest decodes
  if (i.module === 'kernel' && /^(network|pack(_room)?)$/.test(i.name)) return () => 0; // the guest computes
  return () => {
    throw new DeadError(`the module imports ${i.module}.${i.name}, which the runtime does not provide`);
  };
}
