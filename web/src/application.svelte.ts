// An application in this page: who answers for it, and what is known of it whoever does. Every page of pictures
// talks to it, and to nothing else.
import type { Ask } from './ask';
import { call } from './ask';
import { pageToken } from './console';
import type { Mark, Truth } from './marks';

/** Who answered last: a copy on this device, or the origin over the network. */
export type By = 'device' | 'origin';

export class Application {
  readonly id: string;
  /** Who answered last. */
  by = $state<By>('origin');
  /** How often something was changed, here or elsewhere, as far as this page knows: who shows it reads it again. */
  changes = $state(0);
  /** The marks of what is not confirmed, by the id of the input, model or concept. */
  marks = $state.raw<Record<'inputs' | 'models' | 'concepts', ReadonlyMap<string, Mark>>>({
    inputs: new Map(),
    models: new Map(),
    concepts: new Map(),
  });
  truth = $state.raw<Truth>({ queued: 0, sent: 0, conflicts: 0, reached: false });
  #token: { text: string; until: number } | undefined; // until: as performance.now() tells
  #addresses = new Map<string, Promise<string>>(); // by path, the one used last at the end

  constructor(id: string) {
    this.id = id;
  }

  /** Answers a path under /v2 or /hosted, as fetch does. */
  ask: Ask = async (path, init) => {
    const headers = new Headers(init?.headers);
    if (!headers.has('Authorization')) headers.set('Authorization', `Bearer ${await this.#bearer()}`);
    const answer = await fetch(path, { ...init, headers });
    if (answer.status === 401) this.#token = undefined;
    this.by = 'origin';
    this.truth = { ...this.truth, reached: true };
    return answer;
  };

  /** Asks for a path below /v2; what does not succeed throws a Failure. */
  call = <T>(method: string, path: string, body?: object): Promise<T> => call<T>(this.ask, method, path, body);

  /** The same for what changes something: whoever shows it reads it again. */
  write = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const answer = await this.call<T>(method, path, body);
    this.changes++;
    return answer;
  };

  /** The address, in this page's memory, of a picture under a path: "/v2/inputs/ID/thumbnail", "/hosted/NAME". */
  address(path: string): Promise<string> {
    const known = this.#addresses.get(path);
    if (known) this.#addresses.delete(path);
    const address = known ?? this.#load(path);
    this.#addresses.set(path, address);
    for (const [oldest, one] of this.#addresses) {
      if (this.#addresses.size <= mostAddresses) break;
      this.#addresses.delete(oldest);
      void one.then(URL.revokeObjectURL, () => {});
    }
    return address;
  }

  async #load(path: string): Promise<string> {
    try {
      const answer = await this.ask(path);
      if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
      return URL.createObjectURL(await answer.blob());
    } catch (failure) {
      this.#addresses.delete(path); // it may come later
      throw failure;
    }
  }

  async #bearer(): Promise<string> {
    if (!this.#token || this.#token.until < performance.now()) {
      const { token, expires_in } = await pageToken(this.id);
      this.#token = { text: token, until: performance.now() + (expires_in - 60) * 1000 };
    }
    return this.#token.text;
  }
}

const mostAddresses = 600; // pictures that are in memory at once: some screens of a grid

const open = new Map<string, Application>();

/** The application with an id: one for all pages, for as long as the pages are open. */
export function application(id: string): Application {
  let one = open.get(id);
  if (!one) {
    one = new Application(id);
    open.set(id, one);
  }
  return one;
}
