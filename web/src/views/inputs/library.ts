// The pictures that an application has, by which an addition finds those that it need not send.
import type { Application } from '../../host/application.svelte';
import { countInputs } from '../../host/calls';
import { hashes } from './calls';

export class Library {
  readonly #app: Application;
  #hashes: Map<string, string> | undefined; // SHA-256 of the pictures by the IDs of their inputs; undefined: not listed
  #listing: Promise<Map<string, string>> | undefined;
  #count: Promise<number> | undefined; // number of inputs of the application

  constructor(app: Application) {
    this.#app = app;
  }

  /** Lists the inputs of the application once that takes at most one call for 100 pictures of an addition. */
  async list(pictures: number): Promise<void> {
    if (this.#hashes) return;
    this.#count ??= countInputs(this.#app.v2).then(({ all }) => all);
    const calls = Math.ceil((await this.#count) / hashes.rows);
    if (calls > Math.max(1, pictures / 100)) return;
    this.#listing ??= hashes.list(this.#app);
    this.#hashes = await this.#listing;
  }

  /** Returns the SHA-256 of the picture of an input, or undefined if the input does not exist or is not listed. */
  hashOf(id: string): string | undefined {
    return this.#hashes?.get(id);
  }

  /** Notes an input that was added. */
  note(id: string, hash: string): void {
    this.#hashes?.set(id, hash);
  }
}
