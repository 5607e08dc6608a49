// Opens and closes the recogniser on this device: a runtime that a page uses.
import type { Client, Options, Progress, Salvaged } from '../../runtime/src/index';
import type { Fetch } from '../api/client';
import { Failure } from '../api/console';
import type { ProgressMark } from './progress';

type State =
  | { is: 'closed' }
  | { is: 'opening'; stage: Progress['stage']; first?: ProgressMark; last?: ProgressMark; all: number } // bytes
  | { is: 'ready'; isPersistent: boolean; salvaged?: Salvaged } // isPersistent: whether its data outlive the page
  | { is: 'failed'; failure: unknown; damage?: Damage };

/** A store that did not open because its files are damaged. A salvage that fails shows that no part of it can be read. */
type Damage = 'partial' | 'complete';

/** The options of opening a runtime. */
export interface Opening {
  /** Whether a damaged store is opened with the part that can be read. */
  salvage?: boolean;
}

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
  open = async (how: Opening = {}): Promise<void> => {
    if (this.state.is === 'opening' || this.state.is === 'ready') return;
    const opening = this.#open(how);
    Device.#opening.add(opening);
    await opening.finally(() => Device.#opening.delete(opening));
  };

  async #open({ salvage = false }: Opening): Promise<void> {
    const controller = new AbortController();
    this.#stop = controller;
    this.state = { is: 'opening', stage: 'load', all: 0 };
    const onProgress = (p: Progress) => this.#stop === controller && this.#mark(p);
    const options: Options = { base, ...this.#options, salvage, signal: controller.signal, onProgress };
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
      const { salvaged } = opened;
      const isCut = salvaged && salvaged.lost + salvaged.lostPictures > 0; // otherwise another tab has salvaged it
      this.state = { is: 'ready', isPersistent: opened.store === 'private', ...(isCut && { salvaged }) };
    } catch (failure) {
      if (this.#stop !== controller || controller.signal.aborted) return;
      this.#fail(failure, salvage ? 'complete' : 'partial');
    }
  }

  /**
   * Errors are recognised by their names, since they may come from another thread and lose their class. damage: the damage of the store if
   * its files are damaged.
   */
  #fail(failure: unknown, damage: Damage = 'partial'): void {
    const name = failure instanceof Error ? failure.name : '';
    if (['TypeError', 'NetworkError'].includes(name)) this.state = { is: 'failed', failure: new Failure(0) };
    else this.state = { is: 'failed', failure, ...(name === 'DamagedError' && { damage }) };
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

  /** Deletes this browser's own data, and opens the runtime again without them. */
  startAgain = async (): Promise<void> => {
    await this.close();
    try {
      await (await runtime()).Sightline.remove(this.#options.name);
    } finally {
      await this.open();
    }
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
