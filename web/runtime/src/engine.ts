// The engine of a runtime: one instance of the module, which has the data. Calls and pending work drive it.
//
//     serve ──▶ guest ──▶ answer
//                 └─ jobs ──▶ fetch · blobs ──▶ pool ──▶ results ──▶ resume ──▶ guest ──▶ answer
//     step  ──▶ guest ──▶ tasks ──▶ … as for jobs; the next step returns the results to the guest
//
//     sync  ──▶ guest ──▶ effects of a replica's machine ──▶ copy.ts
//
// The instance computes in this thread, one call after another. If the instance dies, the engine opens another one on the same files.

import { Copy, type CopyOptions, type CopyStatus } from './copy.ts';
import { bytesOf, download, fromFile, type Limits } from './download.ts';
import type { FilmFrame, FilmProgress, Films } from './film.ts';
import { DeadError, type Guest } from './guest.ts';
import {
  type Answer,
  codes,
  decodeHostedReply,
  decodeReply,
  decodeServeResult,
  decodeStepResult,
  encodeQuestion,
  encodeRequest,
  encodeResults,
  encodeStep,
  failure,
  type Job,
  type Pictures,
  pictureOf,
  type Request,
  type Result,
  type ServeResult,
  type TaskResult,
  wantRendition,
} from './messages.ts';
import type { Pool } from './pool.ts';

export interface EngineOptions {
  /** Opens an instance on the store. */
  open: () => Promise<Guest>;
  pool: Pool;
  films: Films;
  log: (line: string) => void;
  /** The maximum number of calls whose jobs are in progress. Further calls get `busy`. By default 64. */
  calls?: number;
  /** Set if the application is a replica of an origin's. */
  copy?: CopyOptions;
  /**
   * Called when the origin has withdrawn the application and the instance is closed. The callback must empty the store unless
   * `keepStore` is set.
   */
  onPurge?: (keepStore: boolean) => void;
}

/** Options of a call. */
export interface CallOptions {
  frames?: ((p: FilmProgress<Answer>) => void) | undefined;
  pictures?: Pictures | undefined; // of the frames
  files?: Map<string, Blob> | undefined; // by the URLs in the request
}

const upkeepEvery = 1000; // ms between two steps without work
const tasksAtOnce = 8; // background tasks in progress: most of them wait for a download
const downloadsAtOnce = 8;
const filmBytes = 80 << 20;
const filmLimits: Limits = {
  bytes: filmBytes,
  time: 5 * 60_000,
  tooLarge: { error: codes.tooLarge, text: `video of more than ${filmBytes} bytes: picture too large` },
};
const restarts = 5; // after more deaths without an answer in between, the engine does not restart

/** Returns an answer of this host, with a status in the form of the API. */
function statusAnswer(status: number, code: number, description: string): Answer {
  const body = new TextEncoder().encode(JSON.stringify({ status: { code, description } }));
  return { status, contentType: 'application/json', headers: [], body };
}

const internal = () => statusAnswer(500, 99009, 'Internal error');
const notFound = () => statusAnswer(404, 11101, 'Resource does not exist');
const goneAnswer = (reason: string) => statusAnswer(410, 11101, `The application is no longer here: ${reason}`);
const reads = ({ method }: Request) => method === 'GET' || method === 'HEAD';

/** Returns the answer with a hosted picture. */
function hostedAnswer({ method }: Request, contentType: string, data: Uint8Array): Answer {
  const headers: [string, string][] = [
    ['X-Content-Type-Options', 'nosniff'],
    ['Content-Security-Policy', "sandbox; default-src 'none'; frame-ancestors 'none'"],
  ];
  const body = method === 'HEAD' ? new Uint8Array() : (data as Uint8Array<ArrayBuffer>);
  return { status: 200, contentType, headers, body };
}

/** A semaphore: at most n callers work at once. The others wait in the order of their calls. */
class Semaphore {
  #free: number;
  #queue: (() => void)[] = [];

  constructor(n: number) {
    this.#free = n;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#queue.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#queue.shift();
      if (next) next();
      else this.#free++;
    }
  }
}

/** The engine. */
export class Engine {
  /** The sync of this engine's replica; undefined without a replica. */
  readonly copy: Copy | undefined;

  #o: EngineOptions & { calls: number };
  #guest: Guest;
  #goneReason = ''; // why the origin has withdrawn the application; empty: it has not
  #waitingCalls = 0; // number of calls whose jobs are in progress
  #results: TaskResult[] = []; // results of tasks for the next step
  #tasks = 0; // number of tasks in progress
  #training = false; // whether a training was in progress at the last step
  #deaths = 0; // number of deaths since the last answer
  #restart: Promise<void> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isStepScheduled = false;
  #turns = new MessageChannel();
  #downloads = new Semaphore(downloadsAtOnce);
  #ending = false;
  #closed = false;

  private constructor(o: EngineOptions, guest: Guest) {
    this.#o = { calls: 64, ...o };
    this.#guest = guest;
    this.#turns.port1.onmessage = () => this.#turn();
    (this.#turns.port1 as { unref?: () => void }).unref?.();
    if (o.copy)
      this.copy = new Copy(o.copy, {
        handleEvent: (event) => this.#guest.call('sync', event),
        status: () => this.#readStatus(o.copy?.app ?? ''),
        onFailure: (failure) => this.#abandon(failure),
        onPurge: (reason, keepStore) => this.#purge(reason, keepStore),
      });
    this.copy?.begin();
    this.#wake();
  }

  static async open(o: EngineOptions): Promise<Engine> {
    return new Engine(o, await o.open());
  }

  /** Answers a call of /v2, or a request for a picture under /hosted. It rejects if the engine is closed. */
  async serve(request: Request, signal?: AbortSignal, options: CallOptions = {}): Promise<Answer> {
    if (this.#restart) await this.#restart;
    if (this.#goneReason) return goneAnswer(this.#goneReason);
    if (this.#closed) throw new Error('the engine is closed');
    const guest = this.#guest;
    try {
      if (request.path.startsWith('/hosted/')) return await this.#hosted(request);
      let served = decodeServeResult(guest.call('serve', encodeRequest(request)));
      this.#deaths = 0;
      while ('jobs' in served) served = await this.#jobs(guest, request, served, options, signal);
      return served.answer;
    } catch (failure) {
      if (!(failure instanceof DeadError)) throw failure;
      this.#replaceInstance(failure);
      return this.#goneReason ? goneAnswer(this.#goneReason) : internal();
    } finally {
      if (!reads(request)) this.copy?.noteWrite();
      this.#wake();
    }
  }

  async #jobs(
    guest: Guest,
    request: Request,
    { call, jobs }: Extract<ServeResult, { jobs: Job[] }>,
    { frames, pictures, files }: CallOptions,
    signal?: AbortSignal,
  ): Promise<ServeResult> {
    const films = jobs.filter((j) => j.video);
    const one = (j: Job) => {
      if (!j.video) return this.#do(j, 0, signal, files);
      const onFrame = (done: number, of: number, { frame, picture }: FilmFrame) => {
        const answer = pictures && frames && this.#answerFrame(request, jobs.indexOf(j), frame);
        const seen = answer && { frame: { picture: new Blob([picture], { type: 'image/jpeg' }), answer } };
        frames?.({ film: films.indexOf(j), done, of, ...seen });
      };
      return this.#film(j, onFrame, signal, files, pictures);
    };
    let results: Result[];
    if (this.#waitingCalls >= this.#o.calls) results = jobs.map(() => ({ error: codes.busy }));
    else {
      this.#waitingCalls++;
      results = await Promise.all(jobs.map(one));
      this.#waitingCalls--;
    }
    return decodeServeResult(guest.call('resume', encodeResults(call, results)));
  }

  /** Answers a call as if its n-th job were a video of one frame and the other jobs had failed. */
  #answerFrame(request: Request, n: number, frame: Uint8Array<ArrayBuffer>): Answer | undefined {
    try {
      const serveResult = decodeServeResult(this.#guest.call('serve', encodeRequest(request)));
      if (!('jobs' in serveResult)) return undefined;
      const results = serveResult.jobs.map((_, i) => (i === n ? { frames: [frame] } : { error: codes.fetch }));
      const resumeResult = decodeServeResult(this.#guest.call('resume', encodeResults(serveResult.call, results)));
      return 'answer' in resumeResult ? resumeResult.answer : undefined;
    } catch (failure) {
      if (failure instanceof DeadError) this.#replaceInstance(failure);
      return undefined; // the call itself reports it
    }
  }

  /** Returns the picture or the video of a job: from the caller's files, by download, from the job or from the store. */
  async #data(
    job: Job,
    signal: AbortSignal | undefined,
    files: Map<string, Blob> | undefined,
    limits?: Limits,
  ): Promise<{ data: Uint8Array | Blob; contentType: string } | { failed: Result }> {
    const file = job.url && files?.get(job.url);
    if (file) return fromFile(file, limits);
    if (job.url) return this.#downloads.run(() => download(job.url as string, signal, limits));
    if (job.data) return { data: job.data, contentType: '' };
    if (!job.blob) return { failed: { error: codes.internal } };
    try {
      return { data: await this.#blob(job.blob), contentType: '' };
    } catch (failure) {
      if (failure instanceof DeadError) this.#replaceInstance(failure);
      return { failed: { error: codes.noBlob } };
    }
  }

  /** Decodes and analyses the video of a job when its turn comes. It never rejects. */
  #film(
    job: Job,
    onFrame: (done: number, of: number, frame: FilmFrame) => void,
    signal?: AbortSignal,
    files?: Map<string, Blob>,
    pictures?: Pictures,
  ): Promise<Result> {
    const { films } = this.#o;
    return films.turn(async () => {
      if (signal?.aborted) return { error: codes.timeout };
      const content = await this.#data(job, signal, files, filmLimits);
      if ('failed' in content) return content.failed;
      const data = content.data instanceof Blob ? content.data : new Blob([content.data as Uint8Array<ArrayBuffer>]);
      return films.run(this.#guest, job, data, signal, onFrame, pictures);
    });
  }

  /** Does a job: gets its picture and passes it to an analyser, or pauses the call. It never rejects. */
  async #do(job: Job, lane: 0 | 1, signal?: AbortSignal, files?: Map<string, Blob>): Promise<Result> {
    const { wait } = job;
    if (wait) {
      await new Promise((resolve) => setTimeout(resolve, wait));
      return signal?.aborted ? { error: codes.timeout } : {};
    }
    const content = await this.#data(job, signal, files);
    if ('failed' in content) return content.failed;
    const { contentType } = content;
    const data = content.data instanceof Blob ? await bytesOf(content.data) : content.data;
    if (!(data instanceof Uint8Array)) return data.failed;
    const result = await this.#o.pool.run(job, data, lane, signal);
    if (job.keep && !result.error) {
      result.picture = data;
      if (!result.contentType && contentType) result.contentType = contentType;
    }
    return result;
  }

  /**
   * Returns a JPEG of a picture that need not be stored: upright, of at most 2,048 pixels a side. It rejects with the reason if the picture
   * cannot be decoded.
   */
  async rendition(picture: Blob, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    if (this.#closed) throw new Error('the engine is closed');
    const data = new Uint8Array(await picture.arrayBuffer());
    const { error, text, analysis } = await this.#o.pool.run({ want: wantRendition }, data, 0, signal);
    const jpeg = analysis && pictureOf(analysis);
    if (error || !jpeg) throw failure({ code: error || codes.internal, text: text ?? '' });
    return jpeg;
  }

  /** Returns a picture by its hash. A replica fetches it from the origin if it is not stored here. */
  async #blob(hash: Uint8Array): Promise<Uint8Array> {
    try {
      return this.ask('blob', hash).slice();
    } catch (failure) {
      if (!this.copy || failure instanceof DeadError) throw failure;
    }
    await this.copy.need(hash);
    return this.ask('blob', hash).slice();
  }

  async #hosted(request: Request): Promise<Answer> {
    if (!reads(request)) return statusAnswer(405, 11101, 'Method not allowed');
    const name = request.path.slice('/hosted/'.length);
    const suffix = '/thumbnail';
    try {
      if (name.endsWith(suffix)) return await this.#thumbnail(request, name.slice(0, -suffix.length));
      return await this.#picture(request, name);
    } catch (failure) {
      if (failure instanceof DeadError) throw failure;
      return notFound();
    }
  }

  async #picture(request: Request, name: string): Promise<Answer> {
    const { contentType, data, hash } = decodeHostedReply(this.ask('hosted', name));
    return hostedAnswer(request, contentType, data ?? (await this.#blob(hash)));
  }

  /** Answers with a thumbnail. A replica has thumbnails only of pictures that were added here. For others it answers with the picture. */
  async #thumbnail(request: Request, name: string): Promise<Answer> {
    try {
      return hostedAnswer(request, 'image/jpeg', this.ask('thumbnail', name).slice());
    } catch (failure) {
      if (!this.copy || failure instanceof DeadError) throw failure;
      return this.#picture(request, name);
    }
  }

  /** Asks the guest a question and returns the value, as a view of a copied reply. It throws a GuestError if the guest refuses. */
  ask(kind: string, subject?: string | Uint8Array): Uint8Array {
    return decodeReply(this.#guest.call('ask', encodeQuestion(kind, subject)));
  }

  /** Schedules a step in the next turn of this thread, after the messages that have arrived by then. */
  #wake(): void {
    if (this.#isStepScheduled || this.#closed || this.#restart) return;
    this.#isStepScheduled = true;
    clearTimeout(this.#timer);
    (this.#turns.port1 as { ref?: () => void }).ref?.();
    this.#turns.port2.postMessage(null);
  }

  #turn(): void {
    this.#isStepScheduled = false;
    (this.#turns.port1 as { unref?: () => void }).unref?.();
    if (this.#closed || this.#restart) return;
    try {
      this.#step();
    } catch (failure) {
      if (failure instanceof DeadError) this.#replaceInstance(failure);
      else this.#o.log(`step: ${failure}`);
    }
  }

  #step(): void {
    const done = this.#results.splice(0);
    const take = Math.max(0, tasksAtOnce - this.#tasks);
    const stepResult = decodeStepResult(this.#guest.call('step', encodeStep(take, done)));
    if (stepResult.error) this.#o.log(`step: ${stepResult.error}`);
    if (done.length || stepResult.training || this.#training) this.copy?.noteLocalChange(); // also the writes of a training's last step
    this.#training = stepResult.training;
    for (const { task, job } of stepResult.tasks) void this.#task(this.#guest, task, job);
    if (!stepResult.error && (stepResult.more || stepResult.training || stepResult.tasks.length)) {
      this.#wake();
      return;
    }
    this.#timer = setTimeout(() => this.#wake(), upkeepEvery);
    (this.#timer as { unref?: () => void }).unref?.();
  }

  async #task(guest: Guest, task: number, job: Job): Promise<void> {
    this.#tasks++;
    const result = await this.#do(job, 1);
    this.#tasks--;
    if (guest !== this.#guest) return; // the new instance returns the task again
    this.#results.push({ task, result });
    this.#wake();
  }

  /** Reads the status of the replica from the instance. */
  #readStatus(app: string): CopyStatus {
    const served = decodeServeResult(
      this.#guest.call('serve', encodeRequest({ method: 'GET', path: '/v2/sync/status', app })),
    );
    if (!('answer' in served) || served.answer.status !== 200) throw new Error('the replica did not return its status');
    return JSON.parse(new TextDecoder().decode(served.answer.body)).copy;
  }

  /** Replaces the instance after its store or its machine has failed. The new instance reads the store again. */
  #abandon(failure: unknown): void {
    if (this.#closed || this.#ending || this.#restart) return;
    const error = failure instanceof DeadError ? failure : new DeadError(`store: ${(failure as Error).message}`);
    this.#guest.dead ??= error;
    this.#replaceInstance(error);
  }

  /** Ends the engine because the origin has withdrawn the application. Later calls get 410. */
  #purge(reason: string, keepStore: boolean): void {
    this.#o.log(`the application is no longer for this copy: ${reason}`);
    this.#goneReason = reason;
    this.#end();
    this.#o.onPurge?.(keepStore);
  }

  /** Replaces a dead instance by a new one. The writes that it acknowledged are in the files. */
  #replaceInstance(failure: DeadError): void {
    if (this.#restart || this.#closed || !this.#guest.dead) return;
    this.#o.log(`the module died: ${failure.message}`);
    this.#results = [];
    this.#restart = (async () => {
      try {
        if (++this.#deaths > restarts) throw failure;
        this.#guest = await this.#o.open();
        this.copy?.begin();
      } catch (failure) {
        this.#o.log(`the module does not start again: ${failure}`);
        this.#closed = true;
      }
      this.#restart = undefined;
      this.#wake();
    })();
  }

  /** Ends the engine without waiting for calls in progress. The files stay open, and the caller closes them. */
  async close(): Promise<void> {
    if (this.#restart) await this.#restart;
    if (this.#closed) return;
    this.#ending = true;
    this.copy?.stop();
    this.#end();
  }

  #end(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#turns.port1.close();
    this.#o.pool.close();
    this.#o.films.close();
    if (!this.#guest.dead) this.ask('close');
  }
}
