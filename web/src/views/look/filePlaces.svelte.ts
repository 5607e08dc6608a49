// The places in the files of the pictures that this page has saved to an application. As in Add pictures, an input gets the place of its
// file only if the person wants that, before or after it is saved.

import type { Point } from '../../clauses';
import type { Application } from '../../host/application.svelte';
import { mostInputs, patch } from '../inputs/calls';
import { placeOf } from './place';

export class FilePlaces {
  /** Whether the saved inputs get their places. */
  use = $state(false);
  #saved = $state.raw<readonly { readonly id: string; readonly place: Point }[]>([]);
  readonly #app: Application;

  constructor(app: Application) {
    this.#app = app;
  }

  /** The number of saved pictures with a place in the file. */
  get count(): number {
    return this.#saved.length;
  }

  /** Notes the place of a picture that was saved. */
  async add(id: string, blob: Blob): Promise<void> {
    const place = await placeOf(await blob.arrayBuffer());
    if (!place) return;
    this.#saved = [...this.#saved.filter((saved) => saved.id !== id), { id, place }];
    if (this.use) await this.#write(this.#saved.slice(-1));
  }

  /** Sets whether the inputs get their places. It changes the saved inputs. */
  async setUse(use: boolean): Promise<void> {
    this.use = use;
    for (let n = 0; n < this.#saved.length; n += mostInputs) await this.#write(this.#saved.slice(n, n + mostInputs));
  }

  async #write(saved: readonly { readonly id: string; readonly place: Point }[]): Promise<void> {
    const changes = saved.map(({ id, place }) => ({ id, data: { geo: { geo_point: place } } }));
    await patch(this.#app, this.use ? 'overwrite' : 'remove', changes);
  }
}
