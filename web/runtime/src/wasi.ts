// The functions of WASI preview 1 that a Go program imports. The program gets a clock, random numbers and two outputs. Their
// lines go to the log. It has no arguments, no environment and no files.

/** The memory and the host services that the functions use. */
export interface Reach {
  /** Returns a view of the guest's current memory. */
  bytes(): Uint8Array;
  view(): DataView;
  random(p: Uint8Array): void;
  /** Called with each line that the program writes to standard output or standard error. */
  line(text: string): void;
}

const badf = 8;
const inval = 28;
const noent = 44;
const nosys = 52;

/** The program exited. */
export class Exit extends Error {
  override name = 'Exit';
  constructor(code: number) {
    super(`the module ended with code ${code}`);
  }
}

/** Returns the functions by name. Any other name has a function that returns the error ENOSYS. */
export function wasi(reach: Reach): Record<string, (...args: never[]) => unknown> {
  const decoder = new TextDecoder();
  let rest = ''; // beginning of an incomplete line
  const size = (a: number, b: number) => {
    reach.view().setUint32(a, 0, true);
    reach.view().setUint32(b, 0, true);
    return 0;
  };
  const time = (id: number) =>
    id === 0
      ? BigInt(Date.now()) * 1_000_000n
      : BigInt(Math.round(performance.now() * 1000)) * 1000n; /* monotonic, in steps of one microsecond */
  const functions: Record<string, (...args: never[]) => unknown> = {
    args_get: () => 0,
    args_sizes_get: size,
    environ_get: () => 0,
    environ_sizes_get: size,
    clock_res_get: (_id: number, at: number) => {
      reach.view().setBigUint64(at, 1000n, true);
      return 0;
    },
    clock_time_get: (id: number, _precision: bigint, at: number) => {
      if (id > 1) return inval;
      reach.view().setBigUint64(at, time(id), true);
      return 0;
    },
    random_get: (at: number, n: number) => {
      reach.random(reach.bytes().subarray(at >>> 0, (at >>> 0) + (n >>> 0)));
      return 0;
    },
    sched_yield: () => 0,
    // The guest never waits: every subscription to a clock fires at once, and a caller that is too early checks the time again.
    poll_oneoff: (subscriptions: number, events: number, n: number, eventCount: number) => {
      const view = reach.view();
      for (let i = 0; i < n; i++) {
        const [from, to] = [subscriptions + 48 * i, events + 32 * i];
        reach.bytes().fill(0, to, to + 32);
        view.setBigUint64(to, view.getBigUint64(from, true), true); // the subscription's userdata
        const kind = view.getUint8(from + 8);
        view.setUint16(to + 8, kind === 0 ? 0 : badf, true);
        view.setUint8(to + 10, kind);
      }
      view.setUint32(eventCount, n, true);
      return n > 0 ? 0 : inval;
    },
    proc_exit: (code: number) => {
      throw new Exit(code);
    },
    fd_write: (fd: number, vectors: number, n: number, written: number) => {
      if (fd !== 1 && fd !== 2) return badf;
      const view = reach.view();
      let total = 0;
      let text = '';
      for (let i = 0; i < n; i++) {
        const at = view.getUint32(vectors + 8 * i, true);
        const length = view.getUint32(vectors + 8 * i + 4, true);
        text += decoder.decode(reach.bytes().subarray(at, at + length));
        total += length;
      }
      view.setUint32(written, total, true);
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (line) reach.line(line);
      return 0;
    },
    fd_close: () => badf,
    fd_fdstat_get: (fd: number, at: number) => {
      if (fd > 2) return badf;
      reach.bytes().fill(0, at, at + 24);
      reach.view().setUint8(at, 2); // a character device
      reach.view().setBigUint64(at + 8, 0x40n, true); // the right to write
      return 0;
    },
    fd_fdstat_set_flags: () => 0,
    fd_prestat_get: () => badf,
    fd_prestat_dir_name: () => badf,
    path_open: () => noent,
  };
  return new Proxy(functions, { get: (all, name) => all[name as string] ?? (() => nosys) });
}
