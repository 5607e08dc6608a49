// Sightline in a page: the complete API below /v2, computed in the browser.

import { Client, type CommonOptions, copyStart } from './client.ts';
import { PrivateFiles } from './files.ts';
import type { Port } from './port.ts';

export type { CopyOptions, CopyStatus, Digest, FetchOptions, FilmProgress, Progress, Salvaged } from './client.ts';
export type { Client };

export interface Options extends CommonOptions {
  /** The URL of the folder with the runtime's files, with a slash at the end. By default the folder of this script. */
  base?: string | URL;
  /**
   * Where the data is stored. `private`, the default: in the browser's private file system of the page's origin. If the browser has none,
   * as in some private windows, the data is in memory, and `Client.store` is `memory`. `memory`: until the page closes.
   */
  store?: 'private' | 'memory';
  /**
   * The name of a private store, of which a site can have several. By default `main`, and for a replica `copy-` and the application's id.
   */
  name?: string;
}

function start(worker: Worker): Port {
  const port: Port = {
    post: (message, transfer = []) => worker.postMessage(message, transfer),
    onmessage: () => {},
    onerror: () => {},
    close: () => worker.terminate(),
  };
  worker.onmessage = ({ data }) => port.onmessage(data as never);
  worker.onerror = ({ message }) =>
    port.onerror(
      message ? new Error(message) : new DOMException('the script of the worker cannot be loaded', 'NetworkError'),
    );
  return port;
}

export const Sightline = {
  /** Starts the runtime. When the promise resolves, the runtime can predict. */
  async open(options: Options = {}): Promise<Client> {
    const copy = options.copy && copyStart(options.copy, location.origin);
    // A replica's pending operations exist only on this device, so the browser must not delete them. Some browsers ask the user.
    if (copy) void navigator.storage?.persist?.().catch(() => {});
    const script = new URL('./worker.js', import.meta.url);
    const worker = new Worker(script, { type: 'module', name: 'sightline' });
    return Client.open(
      start(worker),
      {
        base: new URL(options.base ?? './', options.base ? location.href : import.meta.url).href,
        store: options.store ?? 'private',
        name: options.name ?? (copy ? `copy-${copy.app}` : 'main'),
        workers: options.workers ?? Math.min(4, Math.max(1, navigator.hardwareConcurrency - 1)),
        publicUrl: options.publicUrl ?? location.origin,
        ...(options.keepPredicted && { keepPredicted: options.keepPredicted }),
        ...(options.salvage && { salvage: true }),
        pictureTime: options.pictureTime ?? 10_000,
        ...(copy && { copy }),
      },
      options,
    );
  },

  /** Lists the names of the private stores of the page's origin. */
  stores: (): Promise<string[]> => PrivateFiles.stores(),

  /** Deletes a private store. It rejects while a tab has it open. */
  remove: (name = 'main'): Promise<void> => PrivateFiles.remove(name),
};

export interface ServiceWorkerOptions {
  /** The URL of the service worker's script. By default serviceWorker.js in the folder of this script. */
  script?: string | URL;
  /** The URL prefix of the pages that it serves. By default the script's folder. A wider scope needs the header Service-Worker-Allowed. */
  scope?: string;
  /** A path such as `/` or `/local/`. An open runtime answers requests for v2/… and hosted/… below it. */
  answer?: string;
  /** The name of the private store that answers. */
  name?: string;
  /** The URL of a JSON list of URLs, which are stored for a start without a network. It should contain a hash of the list. */
  shell?: string;
}

/** Registers the service worker and waits until it is active. It rejects if the service worker cannot be installed. */
export async function registerServiceWorker(options: ServiceWorkerOptions = {}): Promise<ServiceWorkerRegistration> {
  const script = new URL(options.script ?? './serviceWorker.js', options.script ? location.href : import.meta.url);
  for (const key of ['answer', 'name', 'shell'] as const) if (options[key]) script.searchParams.set(key, options[key]);
  const registration = await navigator.serviceWorker.register(script, {
    ...(options.scope && { scope: options.scope }),
  });
  const worker = registration.installing ?? registration.waiting ?? registration.active;
  if (worker && worker.state !== 'activated')
    await new Promise<void>((resolve, reject) => {
      worker.addEventListener('statechange', () => {
        if (worker.state === 'activated') resolve();
        if (worker.state === 'redundant') reject(new Error('the service worker could not be installed'));
      });
    });
  return registration;
}
