// The bytes of a picture as they came. A small one is fetched at once, a large one when it is asked for.

import { untrack } from 'svelte';
import type { Application } from '../../application.svelte';
import { revoke } from '../../blobs';

const atOnce = 6e6; // bytes

export class Original {
  /** The address of the image, in this page's memory; empty until it is loaded. */
  address = $state('');
  /** In bytes; undefined while it is unknown. */
  size = $state<number>();
  is = $state<'asked' | 'offered' | 'coming' | 'here' | 'away'>('asked');
  readonly #app: () => Application;
  readonly #path: () => string;
  #round = 0;

  constructor(app: () => Application, path: () => string) {
    this.#app = app;
    this.#path = path;
  }

  /** Looks for the bytes at the path that is meant now. Ends what was begun before. */
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

  /** Fetches the bytes, however many they are. */
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

/** The original at a path, found again whenever another is meant, for as long as the component that calls this is shown. */
export function original(app: () => Application, path: () => string): Original {
  const one = new Original(app, path);
  $effect(() => {
    void path();
    void untrack(one.find);
    return one.close;
  });
  return one;
}
