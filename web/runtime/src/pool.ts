// The workers that analyse pictures. Each has an instance of the module with the network, and one picture at a time. The permanent ones
// start at once and the others when a picture waits.

import { codes, decodeResult, encodeJob, type Job, type Result } from './messages.ts';

/** One analyser: a job with its data in, a result out, one after the other. */
export interface Analyser {
  analyse(job: Uint8Array<ArrayBuffer>): Promise<Uint8Array>;
  /** Ends it, whatever it does. */
  close(): void;
}

/** A picture that waits for an analyser. */
interface QueuedJob {
  job: Job;
  data: Uint8Array;
  signal?: AbortSignal | undefined; // of the call
  resolve: (r: Result) => void;
}

export interface PoolOptions {
  make: () => Promise<Analyser>;
  /** Whether another worker could replace one that ends. */
  hasSpare: () => Promise<boolean>;
  /** At most so many analysers. */
  size: number;
  /** So many are there from the start, and stay. */
  least: 0 | 1;
  /** A picture that takes longer than this many milliseconds costs its analyser. */
  patience: number;
  /** An analyser beyond those that stay goes when there was nothing to do for so many milliseconds, and another could be made. */
  idle: number;
  /** Does something in so many milliseconds, unless what it returns is called before: setTimeout's, if it is left out. */
  later?: (milliseconds: number, work: () => Promise<void>) => () => void;
  log: (line: string) => void;
}

function later(milliseconds: number, work: () => Promise<void>): () => void {
  const timer = setTimeout(work, milliseconds);
  return () => clearTimeout(timer);
}

/** The analysers. Calls' pictures come before those that nobody waits for. */
export class Pool {
  #o: PoolOptions & { later: typeof later };
  #idle: Analyser[] = [];
  #count = 0; // of analysers, those that are starting too
  #startError: Error | undefined; // why the last one did not start
  #lanes: [QueuedJob[], QueuedJob[]] = [[], []];
  #signals = new WeakSet<AbortSignal>(); // signals that are listened to: a call has many pictures and one signal
  #busy = 0;
  #cancelShrink = () => {}; // leaves idle analysers as they are
  #closed = false;

  constructor(o: PoolOptions) {
    this.#o = { later, ...o };
  }

  /** Starts the analyser that stays, where one does. It throws why that cannot be. */
  async start(): Promise<void> {
    if (!this.#o.least) return;
    await this.#grow();
    if (this.#startError) throw this.#startError;
  }

  /** Does a job with its picture: in lane 0 for a call, 1 for the background. It never rejects. */
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

  /** Answers the pictures of an aborted call that wait. The others are being analysed. */
  #giveUp(signal: AbortSignal): void {
    for (const lane of this.#lanes)
      for (const w of lane.splice(0)) {
        if (w.signal === signal) w.resolve({ error: codes.timeout });
        else lane.push(w);
      }
  }

  #next(): void {
    while (this.#idle.length) {
      const waiting = this.#lanes[0].shift() ?? this.#lanes[1].shift();
      if (!waiting) return;
      void this.#work(this.#idle.pop() as Analyser, waiting);
    }
    const waits = this.#lanes[0].length + this.#lanes[1].length;
    if (waits > 0 && this.#count < this.#o.size && !this.#closed) void this.#grow();
  }

  async #grow(): Promise<void> {
    this.#count++;
    try {
      const made = await this.#o.make();
      this.#startError = undefined;
      if (this.#closed) return made.close();
      this.#idle.push(made);
    } catch (failure) {
      this.#count--;
      this.#startError = failure as Error;
      this.#o.log(`an analyser does not start: ${failure}`);
      if (this.#count === 0) this.#refuse();
    }
    this.#next();
  }

  /** Answers all that wait: nobody will analyse them. */
  #refuse(): void {
    const text = this.#closed ? 'the runtime is closed' : String(this.#startError);
    for (const lane of this.#lanes) for (const w of lane.splice(0)) w.resolve({ error: codes.internal, text });
  }

  async #work(a: Analyser, w: QueuedJob): Promise<void> {
    this.#busy++;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), this.#o.patience);
    });
    let result: Result;
    try {
      const answer = await Promise.race([a.analyse(encodeJob(w.job, w.data)), late]);
      result = answer ? decodeResult(answer) : { error: codes.tooLong };
      if (answer) this.#idle.push(a);
      else this.#lose(a);
    } catch (failure) {
      this.#o.log(`an analyser failed: ${failure}`);
      result = { error: codes.internal };
      this.#lose(a);
    }
    clearTimeout(timer);
    this.#busy--;
    w.resolve(result);
    this.#next();
    this.#scheduleShrink();
  }

  #lose(a: Analyser): void {
    a.close();
    this.#count--;
  }

  /** Lets all go but those that stay, once there has been nothing to do for a while. */
  #scheduleShrink(): void {
    this.#cancelShrink();
    const { least, idle, later } = this.#o;
    if (this.#busy || this.#count <= least || this.#closed) return;
    this.#cancelShrink = later(idle, async () => {
      const most = (await this.#o.hasSpare()) ? least : 1;
      while (this.#idle.length > most) this.#lose(this.#idle.pop() as Analyser);
    });
  }

  close(): void {
    this.#closed = true;
    this.#cancelShrink();
    for (const a of this.#idle.splice(0)) this.#lose(a);
    this.#refuse();
  }
}
