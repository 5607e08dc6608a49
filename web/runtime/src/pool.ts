// The workers that analyse pictures. Each has an instance of the module with the network, and analyses one picture at a time. A permanent
// worker starts at once, and the others start when a picture waits.

import { codes, decodeResult, encodeJob, type Job, type Result } from './messages.ts';

/** One analyser. It takes one job at a time. */
export interface Analyser {
  /**
   * Analyses the picture of an encoded job. It returns the encoded result, or an error. `allow` replaces the time that the rest may take, in
   * milliseconds, and the result if it takes longer. 0 means the time of a picture.
   */
  analyse(
    job: Uint8Array<ArrayBuffer>,
    allow: (milliseconds: number, late?: Result) => void,
  ): Promise<Uint8Array | Result>;
  /** Ends the analyser at once, also during a job. */
  close(): void;
}

/** A picture that waits for an analyser. */
interface QueuedJob {
  job: Job;
  data: Uint8Array;
  signal?: AbortSignal | undefined; // the call's signal
  resolve: (r: Result) => void;
}

export interface PoolOptions {
  make: () => Promise<Analyser>;
  /** Reports whether another worker is ready to replace one that ends. */
  hasSpare: () => Promise<boolean>;
  /** The maximum number of analysers. */
  size: number;
  /** The number of permanent analysers. */
  minSize: 0 | 1;
  /** The maximum time of a picture in milliseconds. After it the pool closes the analyser. */
  timeout: number;
  /** The time without work, in milliseconds, after which analysers that are not permanent are closed. */
  idle: number;
  /** Calls `work` after so many milliseconds. It returns a function that cancels the call. By default setTimeout. */
  later?: (milliseconds: number, work: () => Promise<void>) => () => void;
  log: (line: string) => void;
}

function later(milliseconds: number, work: () => Promise<void>): () => void {
  const timer = setTimeout(work, milliseconds);
  return () => clearTimeout(timer);
}

/** The analysers with the queue of pictures. Pictures of calls come before pictures of background tasks. */
export class Pool {
  #o: PoolOptions & { later: typeof later };
  #idle: Analyser[] = [];
  #count = 0; // number of analysers, including those that are starting
  #startError: Error | undefined; // why the last analyser did not start; undefined if it did
  #lanes: [QueuedJob[], QueuedJob[]] = [[], []];
  #signals = new WeakSet<AbortSignal>(); // signals with a listener: the pictures of a call share one signal
  #busy = 0;
  #cancelShrink = () => {}; // cancels the scheduled closing of idle analysers
  #closed = false;

  constructor(o: PoolOptions) {
    this.#o = { later, ...o };
  }

  /** Starts the permanent analyser, if `minSize` is 1. It rejects if the analyser does not start. */
  async start(): Promise<void> {
    if (!this.#o.minSize) return;
    await this.#grow();
    if (this.#startError) throw this.#startError;
  }

  /** Analyses a picture. Lane 0 is for calls, lane 1 for background tasks. It never rejects. */
  run(job: Job, data: Uint8Array, lane: 0 | 1, signal?: AbortSignal): Promise<Result> {
    return new Promise((resolve) => {
      if (signal?.aborted || this.#closed) return resolve({ error: codes.timeout });
      this.#lanes[lane].push({ job, data, signal, resolve });
      if (signal && !this.#signals.has(signal)) {
        this.#signals.add(signal);
        signal.addEventListener('abort', () => this.#giveUp(signal));
      }
      this.#next();
    });
  }

  /** Removes the waiting pictures of an aborted call, with the result `timeout`. Pictures in analysis continue. */
  #giveUp(signal: AbortSignal): void {
    for (const lane of this.#lanes)
      for (const w of lane.splice(0)) {
        if (w.signal === signal) w.resolve({ error: codes.timeout });
        else lane.push(w);
      }
  }

  #next(): void {
    while (this.#idle.length) {
      const job = this.#lanes[0].shift() ?? this.#lanes[1].shift();
      if (!job) return;
      void this.#work(this.#idle.pop() as Analyser, job);
    }
    const queueLength = this.#lanes[0].length + this.#lanes[1].length;
    if (queueLength > 0 && this.#count < this.#o.size && !this.#closed) void this.#grow();
  }

  async #grow(): Promise<void> {
    this.#count++;
    try {
      const analyser = await this.#o.make();
      this.#startError = undefined;
      if (this.#closed) return analyser.close();
      this.#idle.push(analyser);
    } catch (failure) {
      this.#count--;
      this.#startError = failure as Error;
      this.#o.log(`an analyser does not start: ${failure}`);
      if (this.#count === 0) this.#refuse();
    }
    this.#next();
  }

  /** Answers all waiting pictures with an error, because no analyser is left. */
  #refuse(): void {
    const text = this.#closed ? 'the runtime is closed' : String(this.#startError);
    for (const lane of this.#lanes) for (const w of lane.splice(0)) w.resolve({ error: codes.internal, text });
  }

  async #work(a: Analyser, w: QueuedJob): Promise<void> {
    this.#busy++;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let stop = (_: { late: Result }) => {};
    const timeout = new Promise<{ late: Result }>((resolve) => {
      stop = resolve;
    });
    const allow = (milliseconds: number, late: Result = { error: codes.tooLong }) => {
      clearTimeout(timer);
      timer = setTimeout(() => stop({ late }), milliseconds || this.#o.timeout);
    };
    allow(0);
    let result: Result;
    try {
      const answer = await Promise.race([a.analyse(encodeJob(w.job, w.data), allow), timeout]);
      result = answer instanceof Uint8Array ? decodeResult(answer) : 'late' in answer ? answer.late : answer;
      if ('late' in answer) this.#closeAnalyser(a);
      else this.#idle.push(a);
    } catch (failure) {
      this.#o.log(`an analyser failed: ${failure}`);
      result = { error: codes.internal };
      this.#closeAnalyser(a);
    }
    clearTimeout(timer);
    this.#busy--;
    w.resolve(result);
    this.#next();
    this.#scheduleShrink();
  }

  #closeAnalyser(a: Analyser): void {
    a.close();
    this.#count--;
  }

  /** Closes all analysers except the permanent one after `idle` without work. It leaves one if no worker is in reserve. */
  #scheduleShrink(): void {
    this.#cancelShrink();
    const { minSize, idle, later } = this.#o;
    if (this.#busy || this.#count <= minSize || this.#closed) return;
    this.#cancelShrink = later(idle, async () => {
      const maxIdle = (await this.#o.hasSpare()) ? minSize : 1;
      while (this.#idle.length > maxIdle) this.#closeAnalyser(this.#idle.pop() as Analyser);
    });
  }

  close(): void {
    this.#closed = true;
    this.#cancelShrink();
    for (const a of this.#idle.splice(0)) this.#closeAnalyser(a);
    this.#refuse();
  }
}
