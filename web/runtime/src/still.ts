// Decodes the pictures that the guest does not decode itself: HEIC, AVIF and JPEG XL. The guest reads their headers, and names the runs of
// decoding modules, with their limits: wasm/README.md, "Jobs and Results".
//
//     job ──▶ guest ──runs──▶ FFmpeg or libjxl, a fresh instance for each run ──outputs──▶ guest ──▶ result

import { type Input, type Program, type RunResult, runProgram } from './command.ts';
import type { Guest } from './guest.ts';
import { codes, type Decoding, decodeResult, failures, type Result, type Run, withOutputs } from './messages.ts';

/** The name of the input in the command lines of the guest. */
const inputName = 'in';

/** A module for a run. */
export interface ModuleNeed {
  name: string;
  memory: number; // maximum of the run, in bytes
  left: number; // time for the run, in ms
  time: number; // time for all runs of the picture, in ms
}

/** The services for decoding. */
export interface StillHost {
  /** Returns a module for a run, or the result for the picture if there is none. */
  module(need: ModuleNeed): Promise<WebAssembly.Module | Result>;
  /** Called when all runs of the picture have ended. */
  onDecoded(): void;
  now(): number; // ms
}

/** Analyses the picture of an encoded job, and decodes it before if the guest cannot. It returns the encoded result, or an error. */
export async function analysePicture(
  guest: Pick<Guest, 'call'>,
  job: Uint8Array<ArrayBuffer>,
  host: StillHost,
): Promise<Uint8Array<ArrayBuffer> | Result> {
  const outputs: Uint8Array[] = [];
  for (let request = job; ; ) {
    const answer = guest.call('analyse', request);
    const { decoding } = decodeResult(answer);
    if (!decoding?.runs?.length) return answer;
    const failed = await decode(decoding, outputs, host);
    if (typeof failed === 'object') return failed;
    host.onDecoded();
    request = withOutputs(job, failed ? [] : outputs, failed);
  }
}

/** Does the runs, and appends their outputs to `outputs`. It returns why a run failed, the error without a module, or 0. */
async function decode(
  { runs = [], memory = 0, time = 0 }: Decoding,
  outputs: Uint8Array[],
  host: StillHost,
): Promise<number | Result> {
  let left = time;
  for (const run of runs) {
    const module = await host.module({ name: run.module ?? '', memory, left, time });
    if (!(module instanceof WebAssembly.Module)) return module;
    const start = host.now();
    const output = new Uint8Array(run.bytes ?? 0);
    const ended = decodeRun(module, run, output, memory);
    if (ended.memory) return failures.memory;
    if (ended.code || ended.isStopped || ended.written !== output.length) return failures.decode;
    outputs.push(output);
    left = Math.max(left - (host.now() - start), 1000);
  }
  return 0;
}

/** Runs a module in a fresh instance, and fills `output`. */
export function decodeRun(
  module: WebAssembly.Module,
  { args = [], input = new Uint8Array() }: Run,
  output: Uint8Array,
  memory: number,
): RunResult & { written: number } {
  let written = 0;
  const file: Input = {
    name: inputName,
    size: input.length,
    read: (offset, p) => p.set(input.subarray(offset, offset + p.length)),
  };
  const out = (p: Uint8Array) => {
    if (written + p.length > output.length) return false;
    output.set(p, written);
    written += p.length;
    return true;
  };
  const isCommand = WebAssembly.Module.exports(module).some(({ name }) => name === '_start');
  const main = (exports: Program) =>
    isCommand ? exports._start() : decodeJXL(exports as unknown as JXLProgram, args[0], input, output.length, out);
  const ended = runProgram(module, args, file, out, memory, main);
  return { ...ended, written };
}

/**
 * The module of JPEG XL, lib/decode.c of github.com/gen2brain/jpegxl. `decode` returns 0 for an error. It writes width, height, depth and
 * the number of frames, the duration of each frame, and the pixels of the first frame or of all. It checks no length.
 */
interface JXLProgram {
  memory: WebAssembly.Memory;
  _initialize?: () => void;
  malloc(size: number): number;
  decode(
    file: number,
    size: number,
    configOnly: number,
    all: number,
    width: number,
    height: number,
    depth: number,
    count: number,
    durations: number,
    pixels: number,
  ): number;
}

/** Writes an output of the module of JPEG XL to `out`: `first`, `times` or `frames`, with exactly `bytes` bytes. It throws if it cannot. */
function decodeJXL(
  program: JXLProgram,
  kind: string | undefined,
  input: Uint8Array,
  bytes: number,
  out: (p: Uint8Array) => boolean,
): void {
  program._initialize?.();
  const reserve = (size: number) => {
    const at = program.malloc(size) >>> 0;
    if (!at) throw new Error('Out of memory');
    return at;
  };
  const [file, numbers] = [reserve(input.length), reserve(16)];
  const most = Math.floor(input.length / 2) + 1; // a frame takes at least two bytes of the file
  const durations = reserve(4 * most);
  const pixels = kind === 'times' ? 0 : reserve(bytes);
  new Uint8Array(program.memory.buffer).set(input, file);
  const [width, height, depth, count] = [numbers, numbers + 4, numbers + 8, numbers + 12] as const;
  const [configOnly, all] = [kind === 'times' ? 1 : 0, kind === 'frames' ? 1 : 0];
  if (!program.decode(file, input.length, configOnly, all, width, height, depth, count, durations, pixels))
    throw new Error('the file cannot be decoded');
  const view = new DataView(program.memory.buffer);
  const number = (at: number) => view.getUint32(at, true);
  if (kind === 'times') {
    if (bytes < 4 || number(count) > most) throw new Error('the output has another size');
    const times = new Uint8Array(bytes);
    const known = new Uint8Array(program.memory.buffer, durations, Math.min(4 * number(count), bytes - 4));
    new DataView(times.buffer).setUint32(0, number(count), true);
    times.set(known, 4);
    out(times);
    return;
  }
  const frame = 4 * (number(depth) === 16 ? 2 : 1) * number(width) * number(height);
  if (!frame || frame * number(count) !== bytes) throw new Error('the output has another size');
  out(new Uint8Array(program.memory.buffer, pixels, bytes));
}

/** Returns the result for a picture whose decoding module the server does not have, or that cannot be loaded. */
export const missingModule = (name: string, isListed: boolean): Result => ({
  error: codes.unsupported,
  text: isListed
    ? `pictures of this kind cannot be decoded here: ${name} cannot be loaded`
    : `pictures of this kind cannot be decoded here: the server of the runtime has no ${name}`,
});

/** Returns the result for a picture that was not decoded in `time` milliseconds. */
export const pictureTooLong = (time: number): Result => ({
  error: codes.tooLarge,
  text: `picture takes more than ${time / 1000}s to decode`,
});
