// Stores pictures as examples of concepts, one after the other, and counts them.

import { SvelteMap } from 'svelte/reactivity';
import { revoke } from '../../api/blobs';
import { inputPath } from '../../api/client';
import type { Application } from '../../host/application.svelte';
import { draws, withAddress } from '../../host/drawable.svelte';
import { picturesIn } from '../../parts/pictureFiles';
import { type Picture, readPicture } from '../look/pictures';
import { addExample } from './calls';

export class Teaching {
  /** The number of pictures stored here, by concept. */
  readonly counts = new SvelteMap<string, number>();
  /** The number of pictures that are not stored yet. */
  pending = $state(0);
  /** The rejected pictures with their failures. */
  failures = $state.raw<readonly { name: string; failure: unknown }[]>([]);
  #app: Application;
  #queue: Promise<unknown> = Promise.resolve();
  #storedPairs = new Set<string>(); // the pictures that were stored here with their concepts

  constructor(app: Application) {
    this.#app = app;
  }

  /** Stores pictures as examples of a concept. thumb: gets the address of each as it is stored. */
  files(concept: string, files: Iterable<File>, thumb?: (address: string) => void): Promise<void> {
    const all = picturesIn(files).map((file) => this.blob(concept, file, file.name, thumb));
    return Promise.all(all).then(() => {});
  }

  /**
   * Stores one picture as an example of a concept; resolves whether it was taken or not. The same picture counts once: a
   * camera gives one frame several times when the machine is busy.
   */
  blob(concept: string, blob: Blob, name = '', thumb?: (address: string) => void): Promise<void> {
    this.pending++;
    const work = this.#queue.then(() => this.#store(concept, blob, name, thumb));
    this.#queue = work;
    return work;
  }

  /** Resolves once all pictures are stored or rejected. */
  async waitForAll(): Promise<void> {
    while (this.pending > 0) await this.#queue;
  }

  async #store(concept: string, blob: Blob, name: string, thumb?: (address: string) => void): Promise<void> {
    try {
      const p = await readPicture(blob, name);
      const pair = `${p.id} ${concept}`;
      if (this.#storedPairs.has(pair)) {
        revoke(p.url);
        return;
      }
      try {
        await addExample(this.#app, p, concept);
      } catch (failure) {
        revoke(p.url);
        throw failure;
      }
      this.#storedPairs.add(pair);
      this.counts.set(concept, (this.counts.get(concept) ?? 0) + 1);
      if (thumb) thumb(await this.#thumb(p));
      else revoke(p.url);
    } catch (failure) {
      this.failures = [...this.failures, { name, failure }];
    } finally {
      this.pending--;
    }
  }

  /** Returns the address of a stored picture, or of its rendition if this browser does not draw the picture. */
  async #thumb(p: Picture): Promise<string> {
    if (await draws(p.url)) return p.url;
    const answer = await this.#app.ask(inputPath(p.id, 'rendition'));
    if (!answer.ok) return p.url;
    revoke(p.url);
    return withAddress(await answer.blob()).address;
  }
}
