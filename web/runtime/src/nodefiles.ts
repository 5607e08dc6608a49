// Files in Node: the files of a store, and the runtime's files in a folder.

import { closeSync, fstatSync, fsyncSync, ftruncateSync, mkdirSync, openSync, readSync, writeSync } from 'node:fs';
import { open as openFile, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Folder, fileCount, partial, StoreError, type StoreFiles, storeCodes } from './files.ts';
import type { Source } from './load.ts';

/** The files of a store in a folder. The constructor creates the folder and the files if they do not exist. */
export class FolderFiles implements StoreFiles {
  readonly folder: Folder;
  #descriptors: number[];

  constructor(folder: string) {
    this.folder = new NodeFolder(folder);
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
      const count = readSync(fd, p, n, p.length - n, offset + n);
      if (count <= 0) throw new StoreError(storeCodes.failed, `file ${file} is shorter than the requested range`);
      n += count;
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

class NodeFolder implements Folder {
  #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async list(): Promise<string[]> {
    return (await readdir(this.#folder)).filter((name) => !name.endsWith(partial));
  }

  async read(name: string): Promise<Uint8Array<ArrayBuffer>> {
    return new Uint8Array(await readFile(join(this.#folder, name)));
  }

  async write(name: string, data: Uint8Array<ArrayBuffer>): Promise<void> {
    const to = join(this.#folder, name);
    const file = await openFile(to + partial, 'w', 0o600);
    try {
      await file.writeFile(data);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(to + partial, to);
    const folder = await openFile(this.#folder);
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  }

  remove(name: string): Promise<void> {
    return rm(join(this.#folder, name));
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

/** Returns the source of the runtime's files in a folder. */
export function inFolder(base: URL): Source {
  return {
    manifest: async () => JSON.parse(await readFile(new URL('manifest.json', base), 'utf8')),
    async file({ url }, onBytes) {
      const data = new Uint8Array(await readFile(new URL(url, base)));
      onBytes(data.length);
      return { bytes: async () => data, isChecked: false };
    },
  };
}
