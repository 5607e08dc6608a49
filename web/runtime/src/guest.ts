// One instance of the module, and its host's services: wasm/README.md is the contract.

import { codeOf, type Files, storeCodes } from './files.ts';
import { checkDone, encodeSettings, type Settings } from './messages.ts';
import { forwarder, functionsOf } from './shape.ts';
import { wasi } from './wasi.ts';

type Fn = (...args: never[]) => unknown;

/** The ABI that this host knows. */
const abi = 1;

/** Bytes that any instance soon has a use for. */
const firstRoom = 48 << 20;

/** The services that a guest may use outside its memory. */
export interface GuestServices {
  now(): bigint; // nanoseconds since 1970
  random(p: Uint8Array): void;
  /** level: −4 debug, 0 info, 4 warn, 8 error. */
  log(level: number, line: string): void;
  /** A file of the bundles, undefined where there is none. */
  bundle(name: string): Uint8Array | undefined;
  /** A file of an older network. */
  older?(base: Uint8Array, name: string): Uint8Array | undefined;
  /** The files of a store of kind `files`. */
  files?: Files;
  /** Further functions of module `sightline`, such as those of a store of kind `lent`, on the guest's memory as it is now. */
  others?(memory: () => Uint8Array): Record<string, Fn>;
}

/** The clock and the randomness of this place, and its console. */
export const system: Pick<GuestServices, 'now' | 'random' | 'log'> = {
  now: () => BigInt(Date.now()) * 1_000_000n,
  random: (p) => {
    const some = new Uint8Array(Math.min(p.length, 65536)); // as many as one call gives; and no view of a memory
    for (let n = 0; n < p.length; n += some.length) {
      crypto.getRandomValues(some);
      p.set(some.subarray(0, p.length - n), n);
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

/** Compiles the module, where it is not yet, and its kernels. Without kernels the module must bring its own. */
export async function compile(
  guest: BufferSource | WebAssembly.Module,
  kernels?: Uint8Array<ArrayBuffer>,
): Promise<Modules> {
  const module = guest instanceof WebAssembly.Module ? guest : await WebAssembly.compile(guest);
  if (!kernels) return { guest: module, forwarded: [] };
  const imports = WebAssembly.Module.imports(module).filter((i) => i.module === 'kernel');
  const wanted = functionsOf(kernels).filter((f) => imports.some((i) => i.name === f.name));
  const [compiled, between] = await Promise.all([kernels, forwarder(wanted)].map((m) => WebAssembly.compile(m)));
  return {
    guest: module,
    kernels: compiled as WebAssembly.Module,
    forwarder: between as WebAssembly.Module,
    forwarded: wanted.map((f) => f.name),
  };
}

interface Exports {
  memory: WebAssembly.Memory;
  _initialize(): void;
  abi(): number;
  reserve(n: number): number;
}

/** The exports that take an envelope and answer one. */
export type Call = 'open' | 'serve' | 'resume' | 'step' | 'analyse' | 'ask' | 'sync';

/** The instance trapped, ended itself or broke the contract: it can no longer be used. */
export class DeadError extends Error {
  override name = 'DeadError';
}

/** An instance. Its calls are synchronous: it computes in the caller's thread. */
export class Guest {
  /** Why it can no longer be used. */
  dead: DeadError | undefined;

  #services: GuestServices;
  #exports!: Exports;
  #bytes = new Uint8Array();
  #panic: string | undefined; // why the program panicked

  private constructor(services: GuestServices) {
    this.#services = services;
  }

  /** Makes an instance, which its first call must open. */
  static async start(modules: Modules, services: GuestServices): Promise<Guest> {
    const g = new Guest(services);
    await g.#instantiate(modules);
    return g;
  }

  /** Makes an instance and opens it. */
  static async open(modules: Modules, services: GuestServices, settings: Settings): Promise<Guest> {
    const g = await Guest.start(modules, services);
    checkDone(g.call('open', encodeSettings(settings)));
    return g;
  }

  async #instantiate(m: Modules): Promise<void> {
    const between = m.forwarder && (await WebAssembly.instantiate(m.forwarder));
    const imports = WebAssembly.Module.imports(m.guest);
    const instance = await WebAssembly.instantiate(m.guest, this.#imports(imports, between?.exports ?? {}));
    this.#exports = instance.exports as unknown as Exports;
    if (m.kernels && between) await this.#bind(m, between);
    this.#grow();
    this.#live(() => this.#exports._initialize());
    const version = this.#live(() => this.#exports.abi());
    if (version !== abi) throw new DeadError(`the module speaks version ${version} of the ABI, want ${abi}`);
  }

  /**
   * Grows the guest's memory at once for the data that it will read, since the browser collects garbage each time that the memory grows.
   * Memory that nobody has written to costs nothing.
   */
  #grow(): void {
    const { memory } = this.#exports;
    const { files } = this.#services;
    try {
      const data = files ? Math.max(files.size(0), files.size(1)) : 0;
      const pages = Math.ceil((firstRoom + 1.25 * data - memory.buffer.byteLength) / 65536);
      if (pages > 0) memory.grow(pages);
    } catch {
      // There is not that much, or the files do not say: it takes what it needs, piece by piece.
    }
  }

  /** Gives the kernels the guest's memory, and the guest the kernels. */
  async #bind(m: Modules, between: WebAssembly.Instance): Promise<void> {
    const kernels = m.kernels as WebAssembly.Module;
    const given: WebAssembly.Imports = {};
    for (const i of WebAssembly.Module.imports(kernels))
      if (i.kind === 'memory') given[i.module] = { ...given[i.module], [i.name]: this.#exports.memory };
    const exports = (await WebAssembly.instantiate(kernels, given)).exports as Record<string, Fn>;
    const table = between.exports.table as WebAssembly.Table;
    for (const [at, name] of m.forwarded.entries()) table.set(at, exports[name]);
  }

  #imports(wanted: WebAssembly.ModuleImportDescriptor[], kernels: WebAssembly.Exports): WebAssembly.Imports {
    const own = { ...this.#functions(), ...this.#services.others?.(() => this.#memory()) };
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
    for (const i of wanted) {
      const from = { sightline: own, kernel: kernels as Record<string, Fn>, wasi_snapshot_preview1: system }[i.module];
      const given = from?.[i.name] ?? missingImport(i);
      all[i.module] = { ...all[i.module], [i.name]: given };
    }
    return all;
  }

  /** The guest's memory, which moves when it grows. */
  #memory(): Uint8Array {
    const { buffer } = this.#exports.memory;
    if (this.#bytes.buffer !== buffer) this.#bytes = new Uint8Array(buffer);
    return this.#bytes;
  }

  #view(): DataView {
    return new DataView(this.#exports.memory.buffer);
  }

  /** A range of the guest's memory. One that does not lie in it ends the instance. */
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

  /** The imports of module `sightline`. Those of a host's store are absent. */
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

  /** Runs code of the guest; what it throws ends the instance. */
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

  /** Makes a call. The argument is the caller's; the answer is a copy. */
  call(name: Call, argument: Uint8Array): Uint8Array<ArrayBuffer> {
    return this.#live(() => {
      const at = this.#exports.reserve(argument.length);
      this.#range(at, argument.length).set(argument);
      const fn = (this.#exports as unknown as Record<Call, (n: number) => bigint>)[name];
      const answer = BigInt.asUintN(64, fn(argument.length));
      return this.#range(Number(answer >> 32n), Number(answer & 0xffff_ffffn)).slice() as Uint8Array<ArrayBuffer>;
    });
  }

  /** The bytes of the guest's memory, which never shrinks. */
  get memory(): number {
    return this.#exports.memory.buffer.byteLength;
  }
}

/** Imports that fill a buffer, or open something: they answer an i64. */
const wide = /^(kv_get|kv_scan|kv_next|picture_lookup|picture_get|register_seq|token_issue|token_read|count)$/;
/** Imports that answer an i32. */
const narrow = /^(kv_snapshot|kv_apply|kv_commit|kv_room|kv_compact|picture_(add|release|drop|has|put)|register_take)$/;

/**
 * Returns the function for an import that no host here implements: one of a host's store, or a kernel that the provider omits. An import of
 * a newer module ends the instance.
 */
function missingImport(i: WebAssembly.ModuleImportDescriptor): Fn {
  if (i.module === 'sightline' && wide.test(i.name)) return () => BigInt(-storeCodes.another);
  if (i.module === 'sightline' && narrow.test(i.name)) return () => storeCodes.another;
  if (i.module === 'kernel' && i.name === 'decode') return () => -1n; // the guest decodes
  if (i.module === 'kernel' && /^(network|pack(_room)?)$/.test(i.name)) return () => 0; // it computes
  return () => {
    throw new DeadError(`no ${i.module} ${i.name}`);
  };
}
