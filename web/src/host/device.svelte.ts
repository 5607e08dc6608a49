// Opens and closes the recogniser on this device: a runtime that a page uses.
import type { Client, Options, Progress } from '../../runtime/src/index';
import type { Fetch } from '../api/client';
import { Failure } from '../api/console';
import type { ProgressMark } from './progress';

type State =
  | { is: 'closed' }
  | { is: 'opening'; stage: Progress['stage']; first?: ProgressMark; last?: ProgressMark; all: number } // bytes
  | { is: 'ready'; isPersistent: boolean } // isPersistent: whether its data outlive the page
  | { is: 'failed'; failure: unknown };

// The server serves the published files of the runtime. The pages' build does not contain them.
const base = '/runtime/';

/** Loads the script of the runtime. */
export function runtime(): Promise<typeof import('../../runtime/src/index')> {
  return import(/* @vite-ignore */ `${base}index.js`);
}

/** One runtime: on the browser's own data, or on a replica of an application. */
export class Device {
  /** The state and the progress of the runtime. */
  state = $state.raw<State>({ is: 'closed' });
  /** The device calls this when the runtime ends without being closed. */
  onend: () => void = () => {};
  #options: Options;
  #client: Client | undefined;
  #stop: AbortController | undefined;

  static #opening = new Set<Promise<void>>();

  /** Resolves when no device is opening. Two devices that open at once would load the same files twice. */
  static async idle(): Promise<void> {
    while (Device.#opening.size) await Promise.allSettled(Device.#opening);
  }

  constructor(options: Options = {}) {
    this.#options = options;
  }

  /** The runtime, while it is ready. */
  get client(): Client | undefined {
    return this.#client;
  }

  /** Opens the runtime if it is neither open nor opening. */
  open = async (): Promise<void> => {
    if (this.state.is === 'opening' || this.state.is === 'ready') return;
    const opening = this.#open();
    Device.#opening.add(opening);
    await opening.finally(() => Device.#opening.delete(opening));
  };

  async #open(): Promise<void> {
    const controller = new AbortController();
    this.#stop = controller;
    this.state = { is: 'opening', stage: 'load', all: 0 };
    const onProgress = (p: Progress) => this.#stop === controller && this.#mark(p);
    const options: Options = { base, ...this.#options, signal: controller.signal, onProgress };
    try {
      const opened = await (await runtime()).Sightline.open(options);
      if (controller.signal.aborted) return await opened.close();
      this.#client = opened;
      opened.onend = (failure) => {
        if (this.#client !== opened) return;
        this.#client = undefined;
        this.#fail(failure);
        this.onend();
      };
      this.state = { is: 'ready', isPersistent: opened.store === 'private' };
    } catch (failure) {
      if (this.#stop !== controller || controller.signal.aborted) return;
      this.#fail(failure);
    }
  }

  /** A load error is recognised by its name, since it may come from another thread and lose its class. */
  #fail(failure: unknown): void {
    const unreached = failure instanceof Error && ['TypeError', 'NetworkError'].includes(failure.name);
    this.state = { is: 'failed', failure: unreached ? new Failure(0) : failure };
  }

  #mark({ stage, allLoaded, allTotal }: Progress): void {
    if (this.state.is !== 'opening') return;
    if (allLoaded === undefined || allTotal === undefined) this.state = { ...this.state, stage };
    else {
      const last = { at: performance.now(), done: allLoaded };
      this.state = { is: 'opening', stage, first: this.state.first ?? last, last, all: allTotal };
    }
  }

  /** Closes the runtime, or stops opening it. */
  close = async (): Promise<void> => {
    this.#stop?.abort();
    const oldClient = this.#client;
    this.#client = undefined;
    this.state = { is: 'closed' };
    await oldClient?.close();
  };

  get #ready(): Client {
    if (!this.#client) throw new DOMException('the recogniser is not open', 'InvalidStateError');
    return this.#client;
  }

  /** Answers a request of /v2 on this device. */
  ask: Fetch = async (path, init) => this.#ready.fetch(path, init);

  /** Returns a JPEG of a picture, which need not be stored. */
  render = async (picture: Blob): Promise<Blob> => this.#ready.rendition(picture);
}
