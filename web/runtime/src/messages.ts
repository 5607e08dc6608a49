// What the envelopes of wasm/README.md say, one type and one function each.

import { EnvelopeError, Reader, Writer } from './envelope.ts';

/** How a guest is opened. */
export interface Settings {
  role: 'engine' | 'analyser' | 'both';
  app?: string;
  store: 'lent' | 'files' | 'memory';
  publicUrl?: string;
  publicAppId?: string;
  keepPredicted?: number; // seconds
  bundles: string[]; // names of the files that the import `bundle` reads
  tokens?: boolean;
  openDoor?: boolean;
  rate?: number;
  burst?: number;
  counted?: boolean;
  maxBytes?: number;
  maxMembers?: number;
  operatorRate?: number;
  operatorBurst?: number;
  pictureTime?: number; // milliseconds of one analysis
  memory?: number; // bytes that the garbage collector keeps to where it can
  checked?: boolean; // the bundles' files have been held to their hashes
  replica?: Replica; // the application is kept a copy of an origin's
}

/** How an application is kept a copy. */
export interface Replica {
  name?: string; // of this copy, for people
  live?: 'stream' | 'poll' | 'once';
  vectors?: 'none' | 'q16';
  pictures?: 'lazy' | 'never' | 'thumbnails' | 'eager';
  audit?: number; // seconds between two comparisons with the origin; 0: an hour
  /** What the origin says of the application, and the place in its control log, where the store may have nothing of it. */
  register?: { seq: number; data: Uint8Array };
  origin?: string; // for people
}

function replica(r: Replica): Writer {
  const w = new Writer().text(1, r.name).uint(2, { stream: 0, poll: 1, once: 2 }[r.live ?? 'stream']);
  w.uint(3, { none: 0, q16: 1 }[r.vectors ?? 'none']);
  w.uint(4, { lazy: 0, never: 1, thumbnails: 2, eager: 3 }[r.pictures ?? 'lazy']);
  return w.uint(5, r.audit).uint(6, r.register?.seq).raw(7, r.register?.data).text(8, r.origin);
}

export function encodeSettings(s: Settings): Uint8Array<ArrayBuffer> {
  const w = Writer.envelope()
    .uint(1, { engine: 1, analyser: 2, both: 3 }[s.role])
    .text(2, s.app)
    .uint(3, { lent: 1, files: 2, memory: 3 }[s.store])
    .text(4, s.publicUrl)
    .text(5, s.publicAppId)
    .uint(6, s.keepPredicted);
  for (const name of s.bundles) w.element(7, name);
  w.bool(8, s.tokens).bool(9, s.openDoor).uint(10, s.rate).uint(11, s.burst).bool(12, s.counted);
  w.uint(13, s.maxBytes).uint(14, s.maxMembers).uint(15, s.operatorRate).uint(16, s.operatorBurst);
  w.uint(17, s.pictureTime).uint(18, s.memory).bool(19, s.checked);
  return (s.replica ? w.message(20, replica(s.replica)) : w).done();
}

/** What the guest refused, with its code. */
export class GuestError extends Error {
  override name = 'GuestError';
  readonly code: number;
  constructor(code: number, text: string) {
    super(text || `the module refused with code ${code}`);
    this.code = code;
  }
}

/** Throws what a Done says, where it says something. */
export function checkDone(answer: Uint8Array): void {
  for (const r = Reader.envelope(answer); r.next(); ) if (r.number === 1) throw failure(r.message());
}

/** The codes of what a guest refuses that a host does something about. */
export const refusals = { noApp: 17 } as const;

/** An error {1 code, 2 text}. */
export function failure(r: Reader): GuestError {
  let code = 0;
  let text = '';
  while (r.next()) {
    if (r.number === 1) code = r.uint();
    if (r.number === 2) text = r.text();
  }
  return new GuestError(code, text);
}

/** One call of /v2, as it crosses threads. */
export interface Request {
  method: string;
  path: string; // still percent-encoded, without the query
  query?: string; // after the '?', still encoded
  authorization?: string;
  session?: string;
  app?: string; // the host vouches
  remote?: string;
  page?: boolean; // one of the host's own pages asks
  body?: Uint8Array;
}

export function encodeRequest(r: Request): Uint8Array<ArrayBuffer> {
  const w = Writer.envelope()
    .text(1, r.method)
    .text(2, r.path)
    .text(3, r.query)
    .text(4, r.authorization)
    .text(5, r.session)
    .text(6, r.app)
    .text(7, r.remote)
    .bool(8, r.page);
  return w.raw(15, r.body).done();
}

/** One answer, as it crosses threads. */
export interface Answer {
  status: number;
  contentType: string;
  headers: [name: string, value: string][];
  body: Uint8Array<ArrayBuffer>;
}

/** What `serve` and `resume` answer: the answer, or what has to be done before it. */
export type Served = { answer: Answer } | { call: number; jobs: Job[] };

export function decodeServed(data: Uint8Array): Served {
  const answer: Answer = { status: 0, contentType: '', headers: [], body: new Uint8Array() };
  const jobs: Job[] = [];
  let call = 0;
  for (const r = Reader.envelope(data); r.next(); )
    switch (r.number) {
      case 1:
        answer.status = r.uint();
        break;
      case 2:
        answer.contentType = r.text();
        break;
      case 3:
        answer.headers.push(header(r.message()));
        break;
      case 8:
        call = r.uint();
        break;
      case 9:
        jobs.push(decodeJob(r.message()));
        break;
      case 15:
        answer.body = r.raw().slice();
        break;
    }
  if (answer.status) return { answer };
  if (!call || !jobs.length) throw new EnvelopeError('neither an answer nor jobs');
  return { call, jobs };
}

/** A header {1 name, 2 value}. */
export function header(r: Reader): [string, string] {
  const h: [string, string] = ['', ''];
  while (r.next()) if (r.number === 1 || r.number === 2) h[r.number - 1] = r.text();
  return h;
}

/** A picture to get and to analyse. */
export interface Job {
  url?: string; // fetch it from here, or
  data?: Uint8Array; // this is it, or; a view of what it was decoded from
  blob?: Uint8Array; // read it from the blobs: its SHA-256
  crop?: Uint8Array; // four float64
  want?: number;
  base?: Uint8Array; // of the network
  keep?: boolean;
  video?: Uint8Array; // of a video: which frames are wanted
  planes?: Uint8Array; // of a frame of a video: its size and its colours
}

export function decodeJob(r: Reader): Job {
  const j: Job = {};
  while (r.next())
    switch (r.number) {
      case 1:
        j.url = r.text();
        break;
      case 2:
        j.data = r.raw();
        break;
      case 3:
        j.blob = r.raw().slice();
        break;
      case 4:
        j.crop = r.raw().slice();
        break;
      case 5:
        j.want = r.uint();
        break;
      case 6:
        j.base = r.raw().slice();
        break;
      case 7:
        j.keep = r.bool();
        break;
      case 8:
        j.video = r.raw().slice();
        break;
    }
  return j;
}

/** An envelope that holds a job with its data, for `analyse`. */
export function encodeJob(j: Job, data: Uint8Array): Uint8Array<ArrayBuffer> {
  const w = Writer.envelope().raw(2, data).raw(4, j.crop).uint(5, j.want);
  return w.raw(6, j.base).bool(7, j.keep).raw(8, j.video).raw(9, j.planes).done();
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
} as const;

/** What became of a job. */
export interface Result {
  error?: number; // one of codes
  text?: string;
  analysis?: Uint8Array;
  passing?: boolean;
  blob?: Uint8Array; // the picture's hash
  contentType?: string;
  picture?: Uint8Array; // of a job with keep, for the guest to hold
  frames?: Uint8Array[]; // of a video
}

/** The result that `analyse` answers. */
export function decodeResult(data: Uint8Array): Result {
  const res: Result = {};
  for (const r = Reader.envelope(data); r.next(); )
    switch (r.number) {
      case 1:
        res.error = r.uint();
        break;
      case 2:
        res.text = r.text();
        break;
      case 3:
        res.analysis = r.raw().slice();
        break;
      case 4:
        res.passing = r.bool();
        break;
      case 5:
        res.blob = r.raw().slice();
        break;
      case 6:
        res.contentType = r.text();
        break;
      case 7:
        res.picture = r.raw().slice();
        break;
      case 8:
        res.frames = [...(res.frames ?? []), r.raw().slice()];
        break;
    }
  return res;
}

function result(r: Result): Writer {
  const w = new Writer().uint(1, r.error).text(2, r.text).raw(3, r.analysis).bool(4, r.passing);
  w.raw(5, r.blob).text(6, r.contentType).raw(7, r.picture);
  for (const frame of r.frames ?? []) w.message(8, frame);
  return w;
}

/** All results of a call, in the order of its jobs. */
export function encodeResults(call: number, results: Result[]): Uint8Array<ArrayBuffer> {
  const w = Writer.envelope().uint(8, call);
  for (const r of results) w.message(9, result(r));
  return w.done();
}

/** A task's result, handed back in a step. */
export interface Finished {
  task: number;
  result: Result;
}

/** A step of the engine: at most so many new tasks, and what became of others. */
export function encodeStep(take: number, done: Finished[], idle = false): Uint8Array<ArrayBuffer> {
  const w = Writer.envelope().uint(1, take);
  for (const d of done) w.message(2, new Writer().uint(1, d.task).message(2, result(d.result)));
  return w.bool(3, idle).done();
}

/** What a step answers. */
export interface Stepped {
  more: boolean;
  tasks: { task: number; job: Job }[];
  training: boolean;
  error: string;
  strays: boolean; // pictures may be left that nothing claims; of a guest whose pictures are lent
}

export function decodeStepped(data: Uint8Array): Stepped {
  const s: Stepped = { more: false, tasks: [], training: false, error: '', strays: false };
  for (const r = Reader.envelope(data); r.next(); )
    switch (r.number) {
      case 1:
        s.more = r.bool();
        break;
      case 2:
        s.tasks.push(task(r.message()));
        break;
      case 3:
        s.training = r.bool();
        break;
      case 4:
        s.error = r.text();
        break;
      case 5:
        s.strays = r.bool();
        break;
    }
  return s;
}

function task(r: Reader): { task: number; job: Job } {
  const t = { task: 0, job: {} as Job };
  while (r.next()) {
    if (r.number === 1) t.task = r.uint();
    if (r.number === 2) t.job = decodeJob(r.message());
  }
  return t;
}

/** A question: what, of which name, or of which hash, in which language, and about which film. */
export function encodeQuestion(
  what: string,
  name?: string | Uint8Array,
  language?: string,
  film?: Film,
): Uint8Array<ArrayBuffer> {
  const w = Writer.envelope().text(1, what);
  (typeof name === 'string' ? w.text(2, name) : w.raw(2, name)).text(3, language);
  if (!film) return w.done();
  const f = new Writer().raw(1, film.output).raw(2, film.video);
  return w.message(4, f.uint(3, film.failure).uint(4, film.frames)).done();
}

/** How a run of FFmpeg failed. */
export const failures = { probe: 1, decode: 2, time: 3, memory: 4 } as const;

/** A step in the decoding of a video. */
export interface Film {
  output?: Uint8Array; // what was read, or written
  video?: Uint8Array; // of its job
  failure?: (typeof failures)[keyof typeof failures];
  frames?: number; // decoded before the failure
}

/** The next command line for a video, with its limits; without arguments, `analyse` does the video. */
export interface FilmReply {
  args: string[]; // the program's name first
  bytes: number; // of ffprobe: the most that it may write; of ffmpeg: of a frame
  frames: number; // of ffmpeg: as many count
  planes?: Uint8Array; // of a frame, for its job
  memory: number; // bytes that a run may have
  time: number; // milliseconds of both runs
}

export function decodeFilm(value: Uint8Array): FilmReply {
  const f: FilmReply = { args: [], bytes: 0, frames: 0, memory: 0, time: 0 };
  for (const r = new Reader(value); r.next(); )
    switch (r.number) {
      case 1:
        f.args.push(r.text());
        break;
      case 2:
        f.bytes = r.uint();
        break;
      case 3:
        f.frames = r.uint();
        break;
      case 4:
        f.planes = r.raw().slice();
        break;
      case 5:
        f.memory = r.uint();
        break;
      case 6:
        f.time = r.uint();
        break;
    }
  return f;
}

/** A frame of a result: when it is on screen, in milliseconds, and what is seen. */
export function encodeFrame(time: number, analysis: Uint8Array | undefined): Uint8Array<ArrayBuffer> {
  return new Writer().uint(1, time).raw(2, analysis).done();
}

/** Parts of an analysis that a job may want as well: a JPEG of at most 320 pixels a side, or in full size. */
export const pictures = { thumbnail: 4, full: 16 } as const;
export type Pictures = keyof typeof pictures;

/** Takes the picture out of a frame: the guest does not need it to answer the call. */
export function takePicture(frame: Uint8Array<ArrayBuffer>): {
  frame: Uint8Array<ArrayBuffer>;
  picture: Uint8Array<ArrayBuffer>;
} {
  const rest = Writer.envelope();
  let [time, picture] = [0, new Uint8Array()];
  for (const r = new Reader(frame); r.next(); ) {
    if (r.number === 1) time = r.uint();
    if (r.number !== 2) continue;
    for (const a = Reader.envelope(r.raw()); a.next(); ) {
      if (a.number === 6 || a.number === 8) picture = a.raw().slice();
      else rest.append(a.whole());
    }
  }
  return { frame: encodeFrame(time, rest.done()), picture };
}

/** Milliseconds from one wanted frame to the next. */
export function sampleOf(video: Uint8Array): number {
  let sample = 0;
  for (const r = new Reader(video); r.next(); ) if (r.number === 1) sample = r.uint();
  return sample;
}

/** The value of a reply: a view. It throws the error that there is instead. */
export function decodeReply(data: Uint8Array): Uint8Array {
  let value = new Uint8Array() as Uint8Array;
  for (const r = Reader.envelope(data); r.next(); ) {
    if (r.number === 1) throw failure(r.message());
    if (r.number === 2) value = r.raw();
  }
  return value;
}

/** What stands at a public name. Without data the picture of a copy is to be fetched from the origin first. */
export interface Hosted {
  contentType: string;
  data?: Uint8Array<ArrayBuffer>;
  hash: Uint8Array;
}

/** The value of the question `hosted`. */
export function decodeHosted(value: Uint8Array): Hosted {
  const h: Hosted = { contentType: '', hash: new Uint8Array(32) };
  for (const r = new Reader(value); r.next(); ) {
    if (r.number === 1) h.contentType = r.text();
    if (r.number === 2) h.data = r.raw().slice();
    if (r.number === 4) h.hash = r.raw().slice();
  }
  return h;
}
