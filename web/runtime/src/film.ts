// Decodes videos. One worker runs FFmpeg and analyses each frame while FFmpeg waits, because a worker of a page cannot wait for
// a message from another thread without cross-origin isolation. So only one frame is in memory, pictures do not wait for videos,
// and closing the worker ends the whole video.
//
//     engine ──video, a Blob──▶ worker: ffprobe ──▶ guest: limits ──▶ ffmpeg ──planes──▶ guest ──▶ frame, frame, … result
//
// The guest has the command lines, the limits and the errors: wasm/README.md, "Films".

import { type Input, type RunResult, runCommand } from './command.ts';
import type { Guest } from './guest.ts';
import {
  codes,
  decodeFilm,
  decodeReply,
  decodeResult,
  encodeFrame,
  encodeJob,
  encodeQuestion,
  type Film,
  type FilmReply,
  failures,
  GuestError,
  type Job,
  type Pictures,
  pictures,
  type Result,
  sampleOf,
  takePicture,
} from './messages.ts';

/** A video for a decoding worker, with the command line of ffprobe. */
export interface FilmTask {
  module: WebAssembly.Module;
  job: Job; // without data
  data: Blob;
  probe: FilmReply;
}

/** The worker's answers: a frame with the number of all frames, or the result at the end. */
export type DecoderMessage = { frame: Uint8Array<ArrayBuffer>; of: number } | { film: Result };

/** Exists only in the workers of browsers. */
declare const FileReaderSync: undefined | (new () => { readAsArrayBuffer(data: Blob): ArrayBuffer });

/** The minimum number of bytes of one read of a Blob. */
const ahead = 1 << 20;

/** Returns a Blob as a program's input file. Only browsers read a Blob synchronously, so in Node inputOf reads all of it into memory. */
async function inputOf(data: Blob): Promise<Input> {
  const file = { name: 'in', size: data.size };
  if (typeof FileReaderSync === 'undefined') {
    const all = new Uint8Array(await data.arrayBuffer());
    return { ...file, read: (offset, p) => p.set(all.subarray(offset, offset + p.length)) };
  }
  const reader = new FileReaderSync();
  let [from, buffer] = [0, new Uint8Array()];
  const read = (offset: number, p: Uint8Array) => {
    if (offset < from || offset + p.length > from + buffer.length) {
      const to = offset + Math.max(ahead, p.length);
      buffer = new Uint8Array(reader.readAsArrayBuffer(data.slice(offset, to)));
      from = offset;
    }
    p.set(buffer.subarray(offset - from, offset - from + p.length));
  };
  return { ...file, read };
}

/** Returns the result for an error of the guest. It throws other errors again. */
export function refusal(failure: unknown): Result {
  if (!(failure instanceof GuestError)) throw failure;
  return { error: failure.code, text: failure.message };
}

/** Asks an instance of the guest a question of kind `kind` about a film. It throws a GuestError if the guest refuses the film. */
export function askFilm(guest: Pick<Guest, 'call'>, kind: string, film: Film): FilmReply {
  return decodeFilm(decodeReply(guest.call('ask', encodeQuestion(kind, undefined, film))));
}

/** Returns the result for a film that failed after `frames` frames. The guest chooses the error. */
function failureOf(guest: Pick<Guest, 'call'>, failure: Film['failure'], frames: number, video?: Uint8Array): Result {
  try {
    askFilm(guest, 'film.failed', { ...(failure && { failure }), frames, ...(video && { video }) });
  } catch (fault) {
    return refusal(fault);
  }
  throw new Error('a failed film without an error');
}

/** Decodes a video, analyses each frame and passes it to `onFrame`. It blocks its thread until the end. */
export async function decodeVideo(
  guest: Pick<Guest, 'call'>,
  { module, job, data, probe }: FilmTask,
  onFrame: (frame: Uint8Array<ArrayBuffer>, of: number) => void,
): Promise<Result> {
  const input = await inputOf(data);
  const video = job.video as Uint8Array;
  const failureResult = (failure: Film['failure'], { memory }: RunResult, frames: number): Result =>
    failureOf(guest, memory ? failures.memory : failure, frames, video);
  try {
    const { output, ended } = runProbe(module, probe, input);
    if (!ended.isStopped && (ended.code || ended.memory)) return failureResult(failures.probe, ended, 0);
    const plan = askFilm(guest, 'film.probed', { output, video });
    const frames = new Frames(guest, job, plan, onFrame);
    const run = runCommand(module, plan.args, input, (p) => frames.take(p), probe.memory);
    if (frames.failure) return frames.failure;
    if (!run.isStopped && (run.code || run.memory || !frames.isComplete))
      return failureResult(failures.decode, run, frames.count);
    return {};
  } catch (failure) {
    return refusal(failure);
  }
}

/** Runs ffprobe and returns its output, at most `probe.bytes` bytes. */
function runProbe(
  module: WebAssembly.Module,
  probe: FilmReply,
  input: Input,
): { output: Uint8Array; ended: RunResult } {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  const take = (p: Uint8Array) => {
    const chunk = p.slice(0, probe.bytes - size);
    pieces.push(chunk);
    size += chunk.length;
    return size < probe.bytes;
  };
  const ended = runCommand(module, probe.args, input, take, probe.memory);
  const output = new Uint8Array(size);
  let at = 0;
  for (const p of pieces) {
    output.set(p, at);
    at += p.length;
  }
  return { output, ended };
}

/** Splits the output of ffmpeg into frames and analyses each of them. */
class Frames {
  count = 0;
  /** The result of a frame whose analysis failed. */
  failure: Result | undefined;

  #guest: Pick<Guest, 'call'>;
  #job: Job;
  #plan: FilmReply;
  #onFrame: (frame: Uint8Array<ArrayBuffer>, of: number) => void;
  #sample: number;
  #frame: Uint8Array;
  #n = 0; // number of bytes in #frame

  constructor(
    guest: Pick<Guest, 'call'>,
    { want, base, video }: Job,
    plan: FilmReply,
    onFrame: (frame: Uint8Array<ArrayBuffer>, of: number) => void,
  ) {
    this.#guest = guest;
    this.#job = { ...(want && { want }), ...(base && { base }), ...(plan.planes && { planes: plan.planes }) };
    this.#plan = plan;
    this.#onFrame = onFrame;
    this.#sample = sampleOf(video as Uint8Array);
    this.#frame = new Uint8Array(plan.bytes);
  }

  /** Whether ffmpeg has written exactly the planned frames. */
  get isComplete(): boolean {
    return this.count === this.#plan.frames && this.#n === 0;
  }

  /** Takes a piece of output. It returns false to end ffmpeg, after a frame too many or a failed analysis. */
  take(p: Uint8Array): boolean {
    for (let at = 0; at < p.length; ) {
      const n = Math.min(p.length - at, this.#frame.length - this.#n);
      this.#frame.set(p.subarray(at, at + n), this.#n);
      at += n;
      this.#n += n;
      if (this.#n < this.#frame.length) break;
      this.#n = 0;
      if (this.count === this.#plan.frames || !this.#analyse()) return false;
    }
    return true;
  }

  #analyse(): boolean {
    const r = decodeResult(this.#guest.call('analyse', encodeJob(this.#job, this.#frame)));
    if (r.error) {
      this.failure = r;
      return false;
    }
    this.#onFrame(encodeFrame(this.count * this.#sample, r.analysis), this.#plan.frames);
    this.count++;
    return true;
  }
}

/** A worker that decodes videos. */
export interface Decoder {
  /** Does one video: decodes a film and passes each frame to `onFrame`, or passes a job to the guest's `analyse`. */
  run(
    task: { film: FilmTask } | { job: Uint8Array<ArrayBuffer> },
    onFrame: (frame: Uint8Array<ArrayBuffer>, of: number) => void,
  ): Promise<Result>;
  /** Ends the worker at once, also during a video. */
  close(): void;
}

export interface FilmsOptions {
  make: () => Promise<Decoder>;
  /** Loads FFmpeg for runs with at most `memory` bytes. It returns undefined if the server does not have the module. */
  module: (memory: number) => Promise<WebAssembly.Module | undefined>;
  /** The time without a video, in milliseconds, after which Films ends the worker and releases FFmpeg. */
  idle: number;
  log: (line: string) => void;
}

/** Progress of a video. */
export interface FilmProgress<FrameAnswer = Response> {
  film: number; // index of the video in the call, from 0
  done: number; // number of frames done
  of: number; // number of all frames
  /** The last frame, if the call asked for pictures: a JPEG, and the answer as if the video had this frame alone. */
  frame?: { picture: Blob; answer: FrameAnswer };
}

/** A frame without its picture, which is empty if the job did not want one. */
export interface FilmFrame {
  frame: Uint8Array<ArrayBuffer>;
  picture: Uint8Array<ArrayBuffer>;
}

const maxQueue = 8; // maximum number of videos that wait
const missingModule = 'videos cannot be decoded here: the server of the runtime has no decoding module';
const unloadableModule = 'videos cannot be decoded here: the decoding module cannot be loaded';

/** Decodes videos in one worker, one video at a time. */
export class Films {
  #o: FilmsOptions;
  #decoder: Decoder | undefined;
  #queue: (() => void)[] = [];
  #busy = false;
  #stop = () => {}; // ends the current video
  #timer: ReturnType<typeof setTimeout> | undefined;
  #module: Promise<WebAssembly.Module | undefined> | undefined;
  #closed = false;

  constructor(o: FilmsOptions) {
    this.#o = o;
  }

  /** Calls `work` when no other video is in progress. If 8 videos wait already, the result is `busy`. */
  async turn(work: () => Promise<Result>): Promise<Result> {
    if (this.#busy) {
      if (this.#queue.length >= maxQueue) return { error: codes.busy };
      await new Promise<void>((resolve) => this.#queue.push(resolve));
    }
    this.#busy = true;
    clearTimeout(this.#timer);
    try {
      return this.#closed ? { error: codes.timeout } : await work();
    } finally {
      const next = this.#queue.shift();
      if (next) next();
      else {
        this.#busy = false;
        this.#timer = setTimeout(() => {
          this.#closeDecoder();
          this.#module = undefined;
        }, this.#o.idle);
        (this.#timer as { unref?: () => void }).unref?.();
      }
    }
  }

  /**
   * Decodes and analyses a video; call it within `turn`. `guest` is any instance of the module. `onFrame` gets each frame, with its picture
   * if `want` is set. It never rejects.
   */
  async run(
    guest: Pick<Guest, 'call'>,
    job: Job,
    data: Blob,
    signal: AbortSignal | undefined,
    onFrame: (done: number, of: number, frame: FilmFrame) => void,
    want?: Pictures,
  ): Promise<Result> {
    const { data: _, ...rest } = job;
    if (want) rest.want = (job.want ?? 0) | pictures[want];
    const frames: Uint8Array[] = [];
    const add = (frame: Uint8Array<ArrayBuffer>, of: number) => {
      const one = want ? takePicture(frame) : { frame, picture: new Uint8Array() };
      frames.push(one.frame);
      onFrame(frames.length, of, one);
    };
    let probe: FilmReply;
    let task: Parameters<Decoder['run']>[0];
    try {
      probe = askFilm(guest, 'film', { output: new Uint8Array(await data.slice(0, 4096).arrayBuffer()) });
      if (!probe.args.length) task = { job: encodeJob(rest, new Uint8Array(await data.arrayBuffer())) };
      else {
        const module = await this.#loadModule(probe.memory);
        if (!(module instanceof WebAssembly.Module)) return module;
        task = { film: { module, job: rest, data, probe } };
      }
      this.#decoder ??= await this.#o.make();
    } catch (failure) {
      if (failure instanceof GuestError) return refusal(failure);
      this.#o.log(`a video cannot be decoded: ${failure}`);
      return { error: codes.internal };
    }
    let resolve = (_: Result) => {};
    const ended = new Promise<Result>((done) => {
      resolve = done;
    });
    const stop = () => resolve({ error: codes.timeout });
    const onTimeout = () => {
      try {
        resolve(failureOf(guest, failures.time, frames.length, job.video));
      } catch {
        resolve({ error: codes.internal }); // the guest has failed
      }
    };
    const timer = setTimeout(onTimeout, probe.time);
    this.#stop = stop;
    signal?.addEventListener('abort', stop);
    if (signal?.aborted || this.#closed) stop();
    const run = this.#decoder.run(task, add);
    let isFinished = false;
    run.then(
      (result) => {
        isFinished = true;
        const all = result.frames ?? []; // frames of a GIF or a WebP, which come all at once
        for (const frame of all) add(frame as Uint8Array<ArrayBuffer>, all.length);
        resolve(result.error ? result : { ...result, frames });
      },
      (failure) => {
        this.#o.log(`a decoder of videos failed: ${failure}`);
        resolve({ error: codes.internal });
      },
    );
    const result = await ended;
    if (!isFinished) this.#closeDecoder();
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
    this.#stop = () => {};
    return result;
  }

  /** Returns the module of FFmpeg, or the error result if it cannot be loaded. */
  async #loadModule(memory: number): Promise<WebAssembly.Module | Result> {
    try {
      this.#module ??= this.#o.module(memory);
      return (await this.#module) ?? { error: codes.unsupported, text: missingModule };
    } catch (failure) {
      this.#module = undefined;
      this.#o.log(`the decoding module cannot be loaded: ${failure}`);
      return { error: codes.unsupported, text: unloadableModule };
    }
  }

  #closeDecoder(): void {
    this.#decoder?.close();
    this.#decoder = undefined;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#stop();
    this.#closeDecoder();
  }
}
