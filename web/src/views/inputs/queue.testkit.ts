// The parts of a browser that the stored queue uses, for tests in Node: a database, locks, and an estimate of the free storage.
import 'fake-indexeddb/auto';

type Held = { name: string; free: () => void };
type Waiting = { name: string; take: () => void };

/** Locks as browsers have them: one holder of a name, the others wait in order. */
class Locks {
  #held: Held[] = [];
  #waiting: Waiting[] = [];

  async query() {
    return { held: this.#held.map(({ name }) => ({ name })) };
  }

  request(name: string, { signal }: { signal: AbortSignal }, work: () => Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const take = () => {
        const held = { name, free: () => {} };
        this.#held.push(held);
        void work().then(() => {
          this.#held = this.#held.filter((one) => one !== held);
          const next = this.#waiting.find((one) => one.name === name);
          this.#waiting = this.#waiting.filter((one) => one !== next);
          next?.take();
          resolve(undefined);
        });
      };
      if (!this.#held.some((one) => one.name === name)) return take();
      const waiting = { name, take };
      this.#waiting.push(waiting);
      signal.addEventListener('abort', () => {
        this.#waiting = this.#waiting.filter((one) => one !== waiting);
        reject(signal.reason);
      });
    });
  }
}

/** The browser's storage. A test sets its values. */
export const storage = { usage: 0, quota: 1e9, estimate: async () => ({ ...storage }) };

Object.defineProperty(globalThis, 'navigator', {
  configurable: true,
  value: { locks: new Locks(), storage, userAgent: '' },
});
