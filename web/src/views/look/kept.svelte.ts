// The pictures that are kept on this device, as the page shows them.
import { revoke } from '../../blobs';
import type { Calls, Kept } from './calls';
import type { Picture } from './pictures';

export class Pictures {
  /** In the order they came. */
  all = $state.raw<readonly Kept[]>([]);
  #calls: Calls;
  #addresses = new Map<string, Promise<string>>(); // by id: of an image in this page's memory
  #bytes: (path: string) => Promise<Blob>;

  /** bytes: reads what a kept picture's path leads to. */
  constructor(calls: Calls, bytes: (path: string) => Promise<Blob>) {
    this.#calls = calls;
    this.#bytes = bytes;
  }

  /** Reads the stored pictures. */
  async load(): Promise<void> {
    this.all = await this.#calls.inputs();
  }

  /** Stores a picture, and resolves when it is stored. */
  async keep(p: Picture, concept?: string): Promise<void> {
    this.#put(await this.#calls.keep(p.id, p.name, p.base64, concept));
  }

  /** Gives a kept picture a concept, or takes it away. */
  async label(id: string, concept: string | undefined): Promise<void> {
    this.#put(await this.#calls.label(id, concept));
  }

  /** Forgets everything. */
  async forget(): Promise<void> {
    await this.#calls.forget();
    this.close();
    this.all = [];
  }

  has(id: string): boolean {
    return this.all.some((k) => k.id === id);
  }

  /** The address of a kept picture's image. */
  address(kept: Kept): Promise<string> {
    let address = this.#addresses.get(kept.id);
    if (!address) {
      address = this.#bytes(kept.path).then((blob) => URL.createObjectURL(blob));
      this.#addresses.set(kept.id, address);
    }
    return address;
  }

  /** The bytes of a kept picture. */
  blob(kept: Kept): Promise<Blob> {
    return this.#bytes(kept.path);
  }

  /** Frees what the browser holds for the images. */
  close(): void {
    for (const address of this.#addresses.values()) void address.then(revoke, () => {});
    this.#addresses.clear();
  }

  #put(kept: Kept): void {
    const at = this.all.findIndex((k) => k.id === kept.id);
    this.all = at < 0 ? [...this.all, kept] : this.all.with(at, kept);
  }
}
