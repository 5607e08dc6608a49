// Loads the original bytes of a picture. Small files are loaded at once, large ones at the person's request. If the browser does not draw
// the original, its rendition is loaded instead.

import { untrack } from 'svelte';
import { revoke } from '../../api/blobs';
import { bytesAt, inputPath } from '../../api/client';
import type { Application } from '../../host/application.svelte';
import { canDraw, drawable, withAddress } from '../../host/drawable.svelte';

const atOnce = 6e6; // bytes; larger files are loaded at the person's request

export class Original {
  /** The blob URL of the image; empty until it is loaded, and if this browser draws neither the original nor a rendition. */
  address = $state('');
  /** Whether `address` is the URL of the original bytes. */
  isOriginal = $state(false);
  /** The size of the original in bytes; undefined while it is unknown. */
  size = $state<number>();
  is = $state<'asked' | 'offered' | 'coming' | 'here' | 'away'>('asked');
  readonly #app: () => Application;
  readonly #input: () => OriginalOf;
  #round = 0;

  constructor(app: () => Application, input: () => OriginalOf) {
    this.#app = app;
    this.#input = input;
  }

  /** Looks for the bytes at the current path. It cancels an earlier request. */
  find = async (): Promise<void> => {
    this.close();
    const round = ++this.#round;
    const { path } = this.#input();
    this.is = 'asked';
    if (!path) return;
    try {
      const head = await this.#app().ask(path, { method: 'HEAD' });
      const isDrawn = await canDraw(head.headers.get('Content-Type') ?? '');
      if (round !== this.#round) return;
      if (head.ok) {
        this.size = Number(head.headers.get('Content-Length')) || undefined;
        if (!isDrawn) return await this.#show(round);
        if ((this.size ?? 0) <= atOnce) return await this.fetch();
      }
      this.is = head.ok ? 'offered' : 'away';
    } catch {
      if (round === this.#round) this.is = 'away';
    }
  };

  /** Loads the bytes, regardless of their size. */
  fetch = async (): Promise<void> => {
    const round = ++this.#round;
    this.is = 'coming';
    try {
      const blob = await this.#read();
      if (round !== this.#round) return;
      this.size = blob.size;
      await this.#show(round, blob);
    } catch {
      if (round === this.#round) this.is = 'away';
    }
  };

  /** Shows the original, or its rendition if this browser does not draw it. Without a rendition `address` stays empty. */
  async #show(round: number, bytes?: Blob): Promise<void> {
    this.is = 'coming';
    const shown = await (bytes ? drawable(bytes, this.#render) : this.#render().then(withAddress)).catch(
      () => undefined,
    );
    if (round !== this.#round) return shown && revoke(shown.address);
    this.address = shown?.address ?? '';
    this.isOriginal = shown !== undefined && shown.blob === bytes;
    this.is = 'here';
  }

  #read = (): Promise<Blob> => bytesAt(this.#app().ask, this.#input().path);

  #render = (): Promise<Blob> => bytesAt(this.#app().ask, inputPath(this.#input().id, 'rendition'));

  /** Loads the original bytes for a download. */
  save = async (name: string): Promise<void> => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(await this.#read());
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  };

  /** Releases the image, and cancels its loading. */
  close = (): void => {
    this.#round++;
    if (this.address) revoke(this.address);
    this.address = '';
    this.isOriginal = false;
    this.size = undefined;
  };
}

/** An input and the path of its original. The path is empty while it is unknown. */
export interface OriginalOf {
  readonly id: string;
  readonly path: string;
}

/** Returns the original of an input. While the calling component is mounted, it is loaded again whenever the path changes. */
export function original(app: () => Application, input: () => OriginalOf): Original {
  const one = new Original(app, input);
  const path = $derived(input().path);
  $effect(() => {
    void path;
    void untrack(one.find);
    return one.close;
  });
  return one;
}
