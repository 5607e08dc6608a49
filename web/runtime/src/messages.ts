// The envelopes of wasm/README.md as types and functions for the host. envelope.gen.ts has their fields.

import {
  type CallField,
  type Decoding,
  type Fault,
  type Settings as Fields,
  type Film,
  type FilmReply,
  getDone,
  getFilmReply,
  getHostedReply,
  getReply,
  getResult,
  getSalvageReply,
  getServeResult,
  getStepResult,
  type HostedReply as HostedFields,
  type Job,
  putFrame,
  putJob,
  putQuery,
  putRequest,
  putResults,
  putSettings,
  putStep,
  type Replica as ReplicaFields,
  type Request as RequestFields,
  type Result,
  type Run,
  type SalvageReply,
  type StepResult as StepFields,
} from './envelope.gen.ts';
import { EnvelopeError, Reader, Writer } from './envelope.ts';

export type { Decoding, Film, FilmReply, Job, Result, Run };

/** The settings with which a host opens a guest. */
export interface Settings extends Omit<Fields, 'role' | 'store' | 'bundles' | 'replica'> {
  role: 'engine' | 'analyser' | 'both';
  store: 'lent' | 'files' | 'memory';
  bundles: string[]; // names of the files that the import `bundle` reads
  replica?: Replica; // set if the application is a replica of an origin's
}

/** The settings of a replica. */
export interface Replica extends Omit<ReplicaFields, 'live' | 'vectors' | 'blobs' | 'registerSeq' | 'register'> {
  live?: 'stream' | 'poll' | 'once';
  vectors?: 'none' | 'q16';
  pictures?: 'lazy' | 'never' | 'thumbnails' | 'eager';
  /** The app record of the application and its entry in the control log. Needed if the store may not have it. */
  register?: { seq: number; data: Uint8Array };
}

export function encodeSettings({ role, store, replica: r, ...rest }: Settings): Uint8Array<ArrayBuffer> {
  const x: Fields = {
    ...rest,
    role: { engine: 1, analyser: 2, both: 3 }[role],
    store: { lent: 1, files: 2, memory: 3 }[store],
  };
  if (r) {
    const { live, vectors, pictures, register, ...rest } = r;
    x.replica = {
      ...rest,
      live: { stream: 0, poll: 1, once: 2 }[live ?? 'stream'],
      vectors: { none: 0, q16: 1 }[vectors ?? 'none'],
      blobs: { lazy: 0, never: 1, thumbnails: 2, eager: 3 }[pictures ?? 'lazy'],
      ...(register && { registerSeq: register.seq, register: register.data }),
    };
  }
  return putSettings(Writer.envelope(), x).finish();
}

/** The codes of the guest's errors that this host handles. */
export const refusals = { noApp: 17, damaged: 18 } as const;

/** An error that the guest returned, with its code. The name of an error of a damaged store is DamagedError, in every thread. */
export class GuestError extends Error {
  override name = 'GuestError';
  readonly code: number;
  constructor(code: number, text: string) {
    super(text || `the module refused with code ${code}`);
    this.code = code;
    if (code === refusals.damaged) this.name = 'DamagedError';
  }
}

/** Throws the error of a Done envelope as a GuestError. It returns if there is no error. */
export function checkDone(answer: Uint8Array): void {
  const { error } = getDone(Reader.envelope(answer));
  if (error) throw failure(error);
}

/** Returns a Fault as a GuestError. */
export const failure = ({ code, text }: Fault): GuestError => new GuestError(code, text);

/** One call of /v2, as it crosses threads. */
export interface Request extends RequestFields {
  method: string;
  path: string; // still percent-encoded, without the query
}

export const encodeRequest = (r: Request): Uint8Array<ArrayBuffer> => putRequest(Writer.envelope(), r).finish();

/** One answer, as it crosses threads. */
export interface Answer {
  status: number;
  contentType: string;
  headers: [name: string, value: string][];
  body: Uint8Array<ArrayBuffer>;
}

/** The result of `serve` and `resume`: the answer, or jobs that must be done before it. */
export type ServeResult = { answer: Answer } | { call: number; jobs: Job[] };

export function decodeServeResult(data: Uint8Array): ServeResult {
  const { status, contentType, header, body, call, jobs } = getServeResult(Reader.envelope(data));
  if (status) return { answer: { status, contentType, headers: header.map(pair), body: body ?? new Uint8Array() } };
  if (!call || !jobs.length) throw new EnvelopeError('neither an answer nor jobs');
  return { call, jobs };
}

/** Returns a header as a pair. */
export const pair = ({ name = '', value = '' }: CallField): [name: string, value: string] => [name, value];

/** Returns the envelope of a job with its data, for `analyse`. */
export function encodeJob({ crop, want, base, keep, video, planes }: Job, data: Uint8Array): Uint8Array<ArrayBuffer> {
  return putJob(Writer.envelope(), { data, crop, want, base, keep, video, planes }).finish();
}

/** Returns the envelope of a job that also has the outputs of its runs, or the reason why a run failed. */
export function withOutputs(job: Uint8Array, outputs: Uint8Array[], failure: number): Uint8Array<ArrayBuffer> {
  return putJob(new Writer().append(job), { outputs, failure }).finish();
}

/** Codes of results. */
export const codes = {
  fetch: 1,
  busy: 2,
  timeout: 3,
  unsupported: 4,
  tooLarge: 5,
  corrupt: 6,
  tooLong: 7,
  network: 8,
  internal: 9,
  noBlob: 10,
  full: 11,
  networkSlow: 12,
  answered: 21,
} as const;

/** Decodes the answer of `analyse`. */
export const decodeResult = (data: Uint8Array): Result => getResult(Reader.envelope(data));

/** Returns the envelope with all results of a call, in the order of its jobs. */
export const encodeResults = (call: number, results: Result[]): Uint8Array<ArrayBuffer> =>
  putResults(Writer.envelope(), { call, results }).finish();

/** The result of a task. A step passes it to the guest. */
export interface TaskResult {
  task: number;
  result: Result;
}

/** Returns the envelope of a step, with the results of tasks. The guest returns at most `take` new tasks. */
export const encodeStep = (take: number, done: TaskResult[], idle = false): Uint8Array<ArrayBuffer> =>
  putStep(Writer.envelope(), { take, done, idle }).finish();

/** The result of a step. */
export interface StepResult extends Omit<StepFields, 'tasks'> {
  tasks: { task: number; job: Job }[];
}

export function decodeStepResult(data: Uint8Array): StepResult {
  const { tasks, ...rest } = getStepResult(Reader.envelope(data));
  return { ...rest, tasks: tasks.map(({ number, job }) => ({ task: number, job: job ?? {} })) };
}

/** Returns the envelope of a question: its kind, the name or the hash of its subject, and the film that it is about. */
export const encodeQuestion = (kind: string, name?: string | Uint8Array, film?: Film): Uint8Array<ArrayBuffer> =>
  putQuery(Writer.envelope(), { what: kind, name, film }).finish();

/** How a run of FFmpeg failed. */
export const failures = { probe: 1, decode: 2, time: 3, memory: 4 } as const;

/** Decodes the value of a question about a film. Without `args` in it, `analyse` does the video without FFmpeg. */
export const decodeFilm = (value: Uint8Array): FilmReply => getFilmReply(new Reader(value));

/** Returns a frame of a result: its time in the video, in milliseconds, and its analysis. */
export const encodeFrame = (time: number, analysis: Uint8Array | undefined): Uint8Array<ArrayBuffer> =>
  putFrame(new Writer(), { timeMs: time, analysis }).finish();

/** The bits of a job's `want` for pictures of frames: a JPEG of at most 320 pixels a side, or in full size. */
export const pictures = { thumbnail: 4, full: 16 } as const;
export type Pictures = keyof typeof pictures;

/** The bit of a job's `want` for the rendition of a picture: a JPEG of at most 2,048 pixels a side. */
export const wantRendition = 32;

/** Returns the JPEG of an analysis; undefined if it has none. */
export function pictureOf(analysis: Uint8Array): Uint8Array<ArrayBuffer> | undefined {
  for (const a = Reader.envelope(analysis); a.next(); ) if (a.number === 8) return a.raw().slice();
  return undefined;
}

/** Separates a frame from its picture, which the guest does not need to answer the call. */
export function takePicture(frame: Uint8Array<ArrayBuffer>): {
  frame: Uint8Array<ArrayBuffer>;
  picture: Uint8Array<ArrayBuffer>;
} {
  const analysis = Writer.envelope();
  let [time, picture] = [0, new Uint8Array()];
  for (const r = new Reader(frame); r.next(); ) {
    if (r.number === 1) time = r.uint();
    if (r.number !== 2) continue;
    for (const a = Reader.envelope(r.raw()); a.next(); ) {
      if (a.number === 6 || a.number === 8) picture = a.raw().slice();
      else analysis.append(a.encodedField());
    }
  }
  return { frame: encodeFrame(time, analysis.finish()), picture };
}

/** Returns the time between two analysed frames of a video in milliseconds. `video` is the field of the job. */
export function sampleOf(video: Uint8Array): number {
  let sample = 0;
  for (const r = new Reader(video); r.next(); ) if (r.number === 1) sample = r.uint();
  return sample;
}

/** Returns the value of a reply, as a view of `data`. It throws a GuestError if the reply is an error. */
export function decodeReply(data: Uint8Array): Uint8Array {
  const { error, value } = getReply(Reader.envelope(data));
  if (error) throw failure(error);
  return value ?? new Uint8Array();
}

/** The hosted picture with a public name. Without `data` a replica must first fetch the picture from the origin. */
export interface HostedReply {
  contentType: string;
  data?: Uint8Array<ArrayBuffer>;
  hash: Uint8Array;
}

/** The part of a damaged store that a salvage has left. */
export type Salvaged = SalvageReply;

/** Decodes the value of the question `salvage`. */
export const decodeSalvage = (value: Uint8Array): Salvaged => getSalvageReply(new Reader(value));

/** Decodes the value of the question `hosted`. */
export function decodeHostedReply(value: Uint8Array): HostedReply {
  const { contentType, data, hash }: HostedFields = getHostedReply(new Reader(value));
  return { contentType, ...(data && { data }), hash: hash ?? new Uint8Array(32) };
}
