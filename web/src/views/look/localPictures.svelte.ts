// The pictures that are stored on this device.
import { revoke } from '../../api/blobs';
import { inputPath } from '../../api/client';
import { drawable } from '../../host/drawable.svelte';
import type { Calls, StoredPicture } from './calls';
import type { Picture } from './pictures';

export class LocalPictures {
  /** The pictures in the order in which they were added. */
  all = $state.raw<readonly StoredPicture[]>([]);
  #calls: Calls;
  #urls = new Map<string, Promise<string>>(); // object URLs by the id of the picture
  #bytes: (path: string) => Promise<Blob>;

  /** bytes: reads the file at a path, such as that of a stored picture. */
  constructor(calls: Calls, bytes: (path: string) => Promise<Blob>) {
    this.#calls = calls;
    this.#bytes = bytes;
  }

  /** Reads the stored pictures. */
  async load(): Promise<void> {
    this.all = await this.#calls.pictures();
  }

  /** Stores a picture, with a label for a concept if one is given. */
  async save(p: Picture, concept?: string): Promise<void> {
    this.#storePicture(await this.#calls.save(p, concept));
  }

  /** Labels a stored picture with a concept, or removes its label. */
  async label(id: string, concept: string | undefined): Promise<void> {
    this.#storePicture(await this.#calls.label(id, concept));
  }

  /** Deletes all pictures and everything that was trained on them. */
  async deleteAll(): Promise<void> {
    await this.#calls.deleteAll();
    this.close();
    this.all = [];
  }

  has(id: string): boolean {
    return this.all.some((k) => k.id === id);
  }

  /** Returns the object URL of a stored picture. It is valid until `close` or `deleteAll`. */
  url(picture: StoredPicture): Promise<string> {
    let url = this.#urls.get(picture.id);
    if (!url) {
      const rendition = () => this.#bytes(inputPath(picture.id, 'rendition'));
      url = this.#bytes(picture.path).then(async (blob) => (await drawable(blob, rendition)).address);
      this.#urls.set(picture.id, url);
    }
    return url;
  }

  /** Returns the bytes of a stored picture. */
  blob(picture: StoredPicture): Promise<Blob> {
    return this.#bytes(picture.path);
  }

  /** Revokes the object URLs. */
  close(): void {
    for (const url of this.#urls.values()) void url.then(revoke, () => {});
    this.#urls.clear();
  }

  #storePicture(picture: StoredPicture): void {
    const at = this.all.findIndex((k) => k.id === picture.id);
    this.all = at < 0 ? [...this.all, picture] : this.all.with(at, picture);
  }
}
