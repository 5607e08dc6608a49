// Sightline in Node: the same module as in pages, in worker threads. The data is in memory or in the files of a folder.

import { availableParallelism } from 'node:os';
import { pathToFileURL } from 'node:url';
import { Client, type CommonOptions, copyStart } from './client.ts';
import { spawn } from './nodeport.ts';

export type { CopyOptions, CopyStatus, Digest, FetchOptions, FilmProgress, Progress, Salvaged } from './client.ts';
export type { Client };

export interface Options extends CommonOptions {
  /** The folder with the runtime's files, as a path or as a URL. By default the folder of this script. */
  base?: string | URL;
  /** `memory`, the default, or a folder. The caller must ensure that no other program uses the folder at the same time. */
  store?: 'memory' | { folder: string };
}

export const Sightline = {
  /** Starts the runtime. When the promise resolves, the runtime can predict. */
  async open(options: Options = {}): Promise<Client> {
    return Client.open(
      spawn(),
      {
        base: folder(options.base ?? new URL('./', import.meta.url)),
        store: options.store ?? 'memory',
        name: 'main',
        workers: options.workers ?? Math.min(4, Math.max(1, availableParallelism() - 1)),
        publicUrl: options.publicUrl ?? 'http://localhost',
        ...(options.keepPredicted && { keepPredicted: options.keepPredicted }),
        ...(options.salvage && { salvage: true }),
        pictureTime: options.pictureTime ?? 10_000,
        ...(options.copy && { copy: copyStart(options.copy) }),
      },
      options,
    );
  },
};

function folder(base: string | URL): string {
  const text = String(base);
  if (/^(file|https?):/.test(text)) return text;
  return pathToFileURL(text.endsWith('/') ? text : `${text}/`).href;
}
