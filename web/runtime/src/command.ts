// Runs a third-party WASI program, such as FFmpeg or libjxl. The program gets arguments, one file for reading, and two outputs. It gets no
// environment, no network, no real clock and no random numbers. It blocks its thread until it ends.

const [badf, inval, noent, nosys, rofs, spipe] = [8, 28, 44, 52, 69, 70];
const [directory, device, regular] = [3, 2, 4];
const [root, first] = [3, 4]; // descriptors: the folder's, and the lowest one of an opened file
const tail = 4096; // characters of standard error that are returned: its end

/** The program's input file. */
export interface Input {
  name: string;
  size: number;
  /** Fills p with the bytes at an offset. All of them are within the size. */
  read(offset: number, p: Uint8Array): void;
}

/** The result of a run. */
export interface RunResult {
  code: number; // exit code; 1 if the program trapped
  text: string; // the end of standard error
  isStopped: boolean; // whether `out` ended the run
  memory: boolean; // whether the program needed more memory than its limit
}

/** FFmpeg's messages for failed allocations. */
const noMemory = /Out of memory|Failed to allocate/;

class Stop extends Error {
  override name = 'Stop';
}

/** The exports of a program, which runs by `_start`, and has `memory`. */
export type Program = { _start(): void } & Record<string, WebAssembly.ExportValue>;

/**
 * Runs a program. `out` gets each piece of standard output, which is valid until `out` returns. If `out` returns false, the run ends. If
 * the program has more than `maxMemory` bytes of memory, the run ends at its next call of WASI. The maximum in the module must be above
 * `maxMemory`, so that runCommand notices the excess.
 */
export const runCommand = (
  module: WebAssembly.Module,
  args: string[],
  input: Input,
  out: (p: Uint8Array) => boolean,
  maxMemory: number,
): RunResult => runProgram(module, args, input, out, maxMemory, (exports) => exports._start());

/** Does what runCommand does for a program that `main` runs. If `main` throws, the exit code is 1. */
export function runProgram(
  module: WebAssembly.Module,
  args: string[],
  input: Input,
  out: (p: Uint8Array) => boolean,
  maxMemory: number,
  main: (exports: Program) => void,
): RunResult {
  const ended: RunResult = { code: 0, text: '', isStopped: false, memory: false };
  let failed: unknown; // what `out` threw
  let stopError: Stop | undefined;
  let memory = new WebAssembly.Memory({ initial: 0 });
  let [all, view] = [new Uint8Array(), new DataView(new ArrayBuffer(0))];
  const renewViews = () => {
    if (all.buffer === memory.buffer) return;
    all = new Uint8Array(memory.buffer);
    view = new DataView(memory.buffer);
    if (all.length > maxMemory) stop();
  };
  const stop = (): never => {
    stopError = new Stop();
    throw stopError;
  };
  const decoder = new TextDecoder();
  const text = (at: number, n: number) => decoder.decode(all.subarray(at, at + n));
  const encoded = args.map((a) => new TextEncoder().encode(`${a}\0`));
  const files = new Map<number, { at: number }>(); // the open files, each with the offset of its next read
  let ticks = 0n; // the program's clock in ms: it advances by 1 at each call

  const isInput = (path: string) => path.replace(/^\.?\/+/, '') === input.name;
  const isRoot = (path: string) => /^[./]*$/.test(path);
  const put32 = (at: number, v: number) => view.setUint32(at, v, true);
  const put64 = (at: number, v: number | bigint) => view.setBigUint64(at, BigInt(v), true);
  const kindOf = (fd: number) => (fd < root ? device : fd === root ? directory : files.has(fd) ? regular : 0);
  const stat = (at: number, kind: number) => {
    all.fill(0, at, at + 64);
    view.setUint8(at + 16, kind);
    put64(at + 24, 1); // links
    if (kind === regular) put64(at + 32, input.size);
    return 0;
  };
  const parts = function* (vectors: number, n: number) {
    for (let i = 0; i < n; i++) {
      const at = view.getUint32(vectors + 8 * i, true);
      yield all.subarray(at, at + view.getUint32(vectors + 8 * i + 4, true));
    }
  };
  const read = (from: number, vectors: number, n: number) => {
    let at = from;
    for (const part of parts(vectors, n)) {
      const chunk = part.subarray(0, Math.max(0, Math.min(part.length, input.size - at)));
      if (chunk.length) input.read(at, chunk);
      at += chunk.length;
    }
    return at - from;
  };
  const write = (fd: number, p: Uint8Array) => {
    if (fd === 2) {
      ended.text = (ended.text + decoder.decode(p.subarray(-tail))).slice(-tail);
      return;
    }
    try {
      ended.isStopped = !out(p);
    } catch (failure) {
      failed = failure;
      stop();
    }
    if (ended.isStopped) stop();
  };

  const functions: Record<string, (...a: never[]) => number> = {
    args_sizes_get: (count: number, size: number) => {
      put32(count, encoded.length);
      put32(
        size,
        encoded.reduce((n, a) => n + a.length, 0),
      );
      return 0;
    },
    args_get: (list: number, at: number) => {
      let to = at;
      for (const [i, a] of encoded.entries()) {
        put32(list + 4 * i, to);
        all.set(a, to);
        to += a.length;
      }
      return 0;
    },
    environ_sizes_get: (count: number, size: number) => {
      put32(count, 0);
      put32(size, 0);
      return 0;
    },
    environ_get: () => 0,
    clock_time_get: (id: number, _precision: bigint, at: number) => {
      if (id > 1) return inval;
      put64(at, ++ticks * 1_000_000n);
      return 0;
    },
    // The program never waits: every subscription to a clock fires at once.
    poll_oneoff: (subscriptions: number, events: number, n: number, eventCount: number) => {
      for (let i = 0; i < n; i++) {
        const [from, to] = [subscriptions + 48 * i, events + 32 * i];
        const [userdata, kind] = [view.getBigUint64(from, true), view.getUint8(from + 8)];
        all.fill(0, to, to + 32);
        put64(to, userdata);
        view.setUint16(to + 8, kind === 0 ? 0 : badf, true);
        view.setUint8(to + 10, kind);
      }
      put32(eventCount, n);
      return n > 0 ? 0 : inval;
    },
    proc_exit: (code: number) => {
      ended.code = code;
      return stop();
    },
    fd_close: (fd: number) => (files.delete(fd) || fd <= root ? 0 : badf),
    fd_fdstat_get: (fd: number, at: number) => {
      const kind = kindOf(fd);
      if (!kind) return badf;
      all.fill(0, at, at + 24);
      view.setUint8(at, kind);
      put64(at + 8, 0x1fff_ffff); // all rights; functions refuse what they do not do
      put64(at + 16, 0x1fff_ffff);
      return 0;
    },
    fd_fdstat_set_flags: () => 0,
    fd_filestat_get: (fd: number, at: number) => (kindOf(fd) ? stat(at, kindOf(fd)) : badf),
    fd_prestat_get: (fd: number, at: number) => {
      if (fd !== root) return badf;
      put32(at, 0);
      put32(at + 4, 1);
      return 0;
    },
    fd_prestat_dir_name: (fd: number, at: number, n: number) => {
      if (fd !== root || n < 1) return badf;
      all[at] = 0x2f;
      return 0;
    },
    fd_read: (fd: number, vectors: number, n: number, done: number) => {
      const file = files.get(fd);
      if (!file && fd !== 0) return badf;
      const count = file ? read(file.at, vectors, n) : 0;
      if (file) file.at += count;
      put32(done, count);
      return 0;
    },
    fd_pread: (fd: number, vectors: number, n: number, offset: bigint, done: number) => {
      if (!files.has(fd)) return badf;
      put32(done, read(Number(offset), vectors, n));
      return 0;
    },
    fd_seek: (fd: number, by: bigint, whence: number, at: number) => {
      const file = files.get(fd);
      if (!file) return fd < root ? spipe : badf;
      const to = Number(by) + ([0, file.at, input.size][whence] ?? Number.NaN);
      if (!(to >= 0)) return inval;
      file.at = to;
      put64(at, to);
      return 0;
    },
    fd_write: (fd: number, vectors: number, n: number, done: number) => {
      if (fd !== 1 && fd !== 2) return badf;
      let total = 0;
      for (const part of parts(vectors, n)) {
        if (part.length) write(fd, part);
        total += part.length;
      }
      put32(done, total);
      return 0;
    },
    path_open: (
      fd: number,
      _look: number,
      path: number,
      n: number,
      flags: number,
      _rights: bigint,
      _inherited: bigint,
      _mode: number,
      openedFd: number,
    ) => {
      if (fd !== root) return badf;
      if (flags & 9) return rofs; // the flags create or truncate the file
      if (!isInput(text(path, n))) return noent;
      let number = first;
      while (files.has(number)) number++;
      files.set(number, { at: 0 });
      put32(openedFd, number);
      return 0;
    },
    path_filestat_get: (fd: number, _look: number, path: number, n: number, at: number) => {
      if (fd !== root) return badf;
      const name = text(path, n);
      return isInput(name) ? stat(at, regular) : isRoot(name) ? stat(at, directory) : noent;
    },
    path_create_directory: () => rofs,
    path_remove_directory: () => rofs,
    path_rename: () => rofs,
    path_unlink_file: () => rofs,
  };
  const imports: Record<string, WebAssembly.ImportValue> = {};
  for (const { name } of WebAssembly.Module.imports(module)) {
    const f = (functions[name] ?? (() => nosys)) as (...a: unknown[]) => number;
    imports[name] = (...a: unknown[]) => {
      if (stopError) throw stopError; // the program caught it
      renewViews();
      return f(...a);
    };
  }
  try {
    const { exports } = new WebAssembly.Instance(module, { wasi_snapshot_preview1: imports });
    memory = exports.memory as WebAssembly.Memory;
    main(exports as Program);
  } catch (failure) {
    if (failed) throw failed;
    if (!stopError) {
      ended.code ||= 1;
      ended.text += `\n${failure}`; // it trapped
    }
  }
  ended.memory = memory.buffer.byteLength > maxMemory || (ended.code !== 0 && noMemory.test(ended.text));
  return ended;
}

/** Returns the program with a maximum of its memory, in bytes, or the unchanged program if it has a maximum. */
export function withMemory(program: Uint8Array<ArrayBuffer>, bytes: number): Uint8Array<ArrayBuffer> {
  const uint = (at: number): [value: number, next: number] => {
    let value = 0;
    for (let factor = 1, next = at; ; factor *= 128) {
      const b = program[next++];
      if (b === undefined) throw new WebAssembly.CompileError('the module ends early');
      value += (b & 0x7f) * factor;
      if (b < 0x80) return [value, next];
    }
  };
  for (let at = 8; at < program.length; ) {
    const [size, body] = uint(at + 1);
    const end = body + size;
    if (program[at] !== 5) {
      at = end;
      continue;
    }
    const [count, limits] = uint(body);
    if (count !== 1 || program[limits] !== 0) return program;
    const [minPages, rest] = uint(limits + 1);
    const pages = Math.floor(bytes / 65536);
    if (pages < minPages) throw new WebAssembly.CompileError(`the module needs ${minPages} pages of memory`);
    const section = [1, 1, ...leb(minPages), ...leb(pages), ...program.subarray(rest, end)];
    const head = program.subarray(0, at);
    const patched = new Uint8Array(head.length + 2 + section.length + program.length - end);
    patched.set(head);
    patched.set([5, section.length, ...section], at);
    patched.set(program.subarray(end), at + 2 + section.length);
    return patched;
  }
  return program;
}

function leb(v: number): number[] {
  const out = [];
  for (; v >= 128; v = Math.floor(v / 128)) out.push((v % 128) | 128);
  return [...out, v];
}
