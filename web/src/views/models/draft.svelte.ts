// A new model that is not created yet. A concept is created with its first picture, so that the picture is stored with its label.

import { revoke } from '../../api/blobs';
import type { Application } from '../../host/application.svelte';
import * as calls from './calls';
import { Teaching } from './teaching.svelte';

/** A concept of it. id: once it is known to the application. */
export class Draft {
  name = $state('');
  id = $state('');
  thumbs = $state.raw<readonly string[]>([]);
  count = $state(0); // number of stored pictures
  isFixed = $state(false); // the concept existed before, so the person cannot rename it here
  savedName = ''; // the stored name
}

/** The maximum number of concepts: one for each digit key. */
export const mostConcepts = 9;
const mostThumbs = 12; // that are shown of a concept: the last

export class NewModel {
  name = $state('');
  exclusive = $state(true);
  closed = $state(false);
  concepts = $state<Draft[]>([new Draft(), new Draft()]);
  readonly teaching: Teaching;
  #app: Application;
  #making = new Map<Draft, Promise<string>>();

  constructor(app: Application) {
    this.#app = app;
    this.teaching = new Teaching(app);
  }

  more(): void {
    if (this.concepts.length < mostConcepts) this.concepts.push(new Draft());
  }

  /** Removes a concept. Stored pictures keep their labels. */
  remove(draft: Draft): void {
    this.concepts = this.concepts.filter((d) => d !== draft);
    for (const address of draft.thumbs) revoke(address);
  }

  /** Stores pictures of a concept. fallback: its name if the person has not typed one. */
  async add(draft: Draft, files: readonly File[], fallback: string): Promise<void> {
    const id = await this.identify(draft, fallback);
    await this.teaching.files(id, files, (address) => this.#addThumb(draft, address));
  }

  /** Stores a frame of the camera like [add] stores pictures. */
  async addFrame(draft: Draft, frame: Blob, fallback: string): Promise<void> {
    const id = await this.identify(draft, fallback);
    await this.teaching.blob(id, frame, '', (address) => this.#addThumb(draft, address));
  }

  #addThumb(draft: Draft, address: string): void {
    draft.count++;
    const all = [...draft.thumbs, address];
    for (const old of all.slice(0, -mostThumbs)) revoke(old);
    draft.thumbs = all.slice(-mostThumbs);
  }

  /** Returns the concept's id. If the concept does not exist yet, it creates it. */
  identify(draft: Draft, fallback: string): Promise<string> {
    if (draft.id) return Promise.resolve(draft.id);
    let making = this.#making.get(draft);
    if (!making) {
      making = this.#identify(draft, draft.name.trim() || fallback);
      this.#making.set(draft, making);
      making.catch(() => {}).finally(() => this.#making.delete(draft));
    }
    return making;
  }

  async #identify(draft: Draft, name: string): Promise<string> {
    const { concept, isNew } = await calls.findOrCreateConcept(this.#app, name);
    draft.name = concept.name;
    draft.isFixed = !isNew;
    draft.savedName = concept.name;
    draft.id = concept.id;
    return concept.id;
  }

  /** Stores a name that the person changed after the first picture. */
  async rename(draft: Draft): Promise<void> {
    const name = draft.name.trim();
    if (!draft.id || !name || name === draft.savedName) return;
    await calls.renameConcept(this.#app, draft.id, name);
    draft.savedName = name;
  }

  /** Waits until all pictures are stored, creates the model, and returns its id. */
  async make(): Promise<string> {
    await this.teaching.waitForAll();
    const ids: string[] = [];
    for (const draft of this.concepts) {
      await this.rename(draft);
      ids.push(await this.identify(draft, draft.name));
    }
    return calls.create(this.#app, this.name.trim(), ids, { exclusive: this.exclusive, closed: this.closed });
  }

  close(): void {
    for (const draft of this.concepts) for (const address of draft.thumbs) revoke(address);
  }
}
