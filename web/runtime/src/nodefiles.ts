// The files of Node: those of a store, and those of the runtime.

import { closeSync, fstatSync, fsyncSync, ftruncateSync, mkdirSync, openSync, readSync, writeSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Files, fileCount, StoreError, storeCodes } from './files.ts';
import type { Source } from './load.ts';

/** Files of a folder, which is made where there is none. */
export class FolderFiles implements Files {
  #descriptors: number[];

  constructor(folder: string) {
    mkdirSync(folder, { recursive: true });
    this.#descriptors = Array.from({ length: fileCount }, (_, n) => open(join(folder, String(n))));
  }

  #file(n: number): number {
    const fd = this.#descriptors[n];
    if (fd === undefined) throw new StoreError(storeCodes.another, `no file ${n}`);
    return fd;
  }

  size(file: number): number {
    return fstatSync(this.#file(file)).size;
  }

  read(file: number, offset: number, p: Uint8Array): void {
    const fd = this.#file(file);
    for (let n = 0; n < p.length; ) {
      const got = readSync(fd, p, n, p.length - n, offset + n);
      if (got <= 0) throw new StoreError(storeCodes.failed, `file ${file} ends before what was asked of it`);
      n += got;
    }
  }

  write(file: number, offset: number, p: Uint8Array): void {
    const fd = this.#file(file);
    for (let n = 0; n < p.length; ) n += writeSync(fd, p, n, p.length - n, offset + n);
  }

  truncate(file: number, size: number): void {
    ftruncateSync(this.#file(file), size);
  }

  sync(file: number): void {
    fsyncSync(this.#file(file));
  }

  close(): void {
    for (const fd of this.#descriptors.splice(0)) closeSync(fd);
  }
}

function open(path: string): number {
  try {
    return openSync(path, 'r+');
  } catch (failure) {
    if ((failure as NodeJS.ErrnoException).code !== 'ENOENT') throw failure;
    return openSync(path, 'w+', 0o600);
  }
}

/** The files of the runtime in a folder. */
export function inFolder(base: URL): Source {
  return {
    manifest: async () => JSON.parse(await readFile(new URL('manifest.json', base), 'utf8')),
    async file({ url }, got) {
      const data = new Uint8Array(await readFile(new URL(url, base)));
      got(data.length);
      return { bytes: async () => data, checked: false };
    },
  };
}
