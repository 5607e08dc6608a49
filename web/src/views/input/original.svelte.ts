// Loads the original bytes of a picture. Small files are loaded at once, large ones at the person's request.

import { untrack } from 'svelte';
import type { Application } from '../../application.svelte';
import { revoke } from '../../blobs';

const atOnce = 6e6; // bytes; larger files are loaded at the person's request

export class Original {
  /** The blob URL of the image; empty until it is loaded. */
  address = $state('');
  /** The size in bytes; undefined while it is unknown. */
  size = $state<number>();
  is = $state<'asked' | 'offered' | 'coming' | 'here' | 'away'>('asked');
  readonly #app: () => Application;
  readonly #path: () => string;
  #round = 0;

  constructor(app: () => Application, path: () => string) {
    this.#app = app;
    this.#path = path;
  }

  /** Looks for the bytes at the current path. It cancels an earlier request. */
  find = async (): Promise<void> => {
    this.close();
    const round = ++this.#round;
    const path = this.#path();
    this.is = 'asked';
    if (!path) return;
    try {
      const head = await this.#app().ask(path, { method: 'HEAD' });
      if (round !== this.#round) return;
      if (head.ok) {
        this.size = Number(head.headers.get('Content-Length')) || undefined;
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
    const path = this.#path();
    this.is = 'coming';
    try {
      const answer = await this.#app().ask(path);
      const blob = answer.ok ? await answer.blob() : undefined;
      if (round !== this.#round) return;
      if (!blob) {
        this.is = 'away';
        return;
      }
      this.size = blob.size;
      this.address = URL.createObjectURL(blob);
      this.is = 'here';
    } catch {
      if (round === this.#round) this.is = 'away';
    }
  };

  /** Releases the image, and cancels its loading. */
  close = (): void => {
    this.#round++;
    if (this.address) revoke(this.address);
    this.address = '';
    this.size = undefined;
  };
}

/** Returns the original at a path. While the calling component is mounted, it is loaded again whenever the path changes. */
export function original(app: () => Application, path: () => string): Original {
  const one = new Original(app, path);
  $effect(() => {
    void path();
    void untrack(one.find);
    return one.close;
  });
  return one;
}
