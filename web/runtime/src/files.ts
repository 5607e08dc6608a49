// The four files of a store, for the imports `file_*`. A read returns all requested bytes or fails. A write is in place, and survives a
// crash once `sync` has returned. The store's folder can have further files with names.

/** The error codes that the store's imports return. */
export const storeCodes = { notFound: 1, closed: 2, full: 3, corrupt: 4, failed: 5, another: 9 } as const;

/** An error of a file, with the code that the import returns. */
export class StoreError extends Error {
  override name = 'StoreError';
  readonly code: number;
  constructor(code: number, text: string, cause?: unknown) {
    super(text, { cause });
    this.code = code;
  }
}

/** Files by their numbers, 0 to 3. The methods throw a [StoreError] or an error of the platform. */
export interface Files {
  size(file: number): number;
  /** Fills p with the bytes at the offset. It throws if the file ends before. */
  read(file: number, offset: number, p: Uint8Array): void;
  write(file: number, offset: number, p: Uint8Array): void;
  truncate(file: number, size: number): void;
  sync(file: number): void;
  close(): void;
}

/** Further files in a store's folder. A file is written once. After a crash it is complete or does not exist. */
export interface Folder {
  list(): Promise<string[]>;
  read(name: string): Promise<Uint8Array<ArrayBuffer>>;
  /** Writes a file. It survives a crash once the promise has resolved. */
  write(name: string, data: Uint8Array<ArrayBuffer>): Promise<void>;
  remove(name: string): Promise<void>;
}

/** The files of a store with its folder. */
export interface StoreFiles extends Files {
  readonly folder: Folder;
}

/** The suffix of a file's name while it is being written. */
export const partial = '.part';

/** Truncates all files of a store to zero bytes and syncs them. */
export function wipe(files: Files): void {
  for (let n = 0; n < fileCount; n++) {
    files.truncate(n, 0);
    files.sync(n);
  }
}

/** The number of files of a store. */
export const fileCount = 4;

/** Returns the store code for an exception of Files. */
export function codeOf(failure: unknown): number {
  if (failure instanceof StoreError) return failure.code;
  const { name, code } = failure as { name?: string; code?: string };
  if (name === 'QuotaExceededError' || code === 'ENOSPC' || code === 'EDQUOT') return storeCodes.full;
  if (name === 'InvalidStateError' || code === 'EBADF') return storeCodes.closed;
  return storeCodes.failed;
}

function short(file: number): never {
  throw new StoreError(storeCodes.failed, `file ${file} is shorter than the requested range`);
}

/** Files in memory, which end with the page. */
export class MemoryFiles implements Files {
  #files = Array.from({ length: fileCount }, () => ({ data: new Uint8Array(), size: 0 }));

  #file(n: number) {
    const f = this.#files[n];
    if (!f) throw new StoreError(storeCodes.another, `no file ${n}`);
    return f;
  }

  size(file: number): number {
    return this.#file(file).size;
  }

  read(file: number, offset: number, p: Uint8Array): void {
    const f = this.#file(file);
    if (offset + p.length > f.size) short(file);
    p.set(f.data.subarray(offset, offset + p.length));
  }

  write(file: number, offset: number, p: Uint8Array): void {
    const f = this.#file(file);
    this.#grow(f, offset + p.length);
    f.data.set(p, offset);
  }

  truncate(file: number, size: number): void {
    const f = this.#file(file);
    this.#grow(f, size);
    f.data.fill(0, size, f.size);
    f.size = size;
  }

  #grow(f: { data: Uint8Array; size: number }, size: number): void {
    if (size > f.data.length) {
      const grown = new Uint8Array(Math.max(size, 2 * f.data.length));
      grown.set(f.data);
      f.data = grown;
    }
    f.size = Math.max(f.size, size);
  }

  sync(file: number): void {
    this.#file(file);
  }

  close(): void {}
}

/** FileSystemSyncAccessHandle, which lib.dom does not declare, since it exists only in dedicated workers. */
interface Handle {
  read(p: Uint8Array, options: { at: number }): number;
  write(p: Uint8Array, options: { at: number }): number;
  truncate(size: number): void;
  getSize(): number;
  flush(): void;
  close(): void;
}

/** Files in the private file system of the page's origin. Only one worker at a time can have them open. */
export class PrivateFiles implements StoreFiles {
  readonly folder: Folder;
  #handles: Handle[];

  private constructor(folder: FileSystemDirectoryHandle, handles: Handle[]) {
    this.folder = new PrivateFolder(folder);
    this.#handles = handles;
  }

  /**
   * Opens the files of a store, and creates them empty if they do not exist. A worker that has just ended may still have them
   * open, so `open` retries for `timeout` milliseconds.
   */
  static async open(store: string, timeout = 5000): Promise<PrivateFiles> {
    let folder = await navigator.storage.getDirectory();
    for (const name of ['sightline', store]) folder = await folder.getDirectoryHandle(name, { create: true });
    const handles: Handle[] = [];
    const until = performance.now() + timeout;
    try {
      for (let n = 0; n < fileCount; n++) {
        const file = await folder.getFileHandle(String(n), { create: true });
        handles.push(await exclusive(file, until));
      }
    } catch (failure) {
      for (const h of handles) h.close();
      throw failure;
    }
    return new PrivateFiles(folder, handles);
  }

  /** Lists the names of all stores; none if the browser has no private file system. */
  static async stores(): Promise<string[]> {
    try {
      const root = await navigator.storage.getDirectory();
      return await new PrivateFolder(await root.getDirectoryHandle('sightline')).list();
    } catch {
      return [];
    }
  }

  /** Deletes the files of a store. It rejects while a tab has them open. */
  static async remove(store: string): Promise<void> {
    const root = await navigator.storage.getDirectory();
    const folder = await root.getDirectoryHandle('sightline', { create: true });
    await folder.removeEntry(store, { recursive: true }).catch((failure: unknown) => {
      if ((failure as Error).name !== 'NotFoundError') throw failure;
    });
  }

  #handle(n: number): Handle {
    const h = this.#handles[n];
    if (!h) throw new StoreError(storeCodes.another, `no file ${n}`);
    return h;
  }

  size(file: number): number {
    return this.#handle(file).getSize();
  }

  read(file: number, offset: number, p: Uint8Array): void {
    const h = this.#handle(file);
    for (let n = 0; n < p.length; ) {
      const count = h.read(p.subarray(n), { at: offset + n });
      if (!isCount(count, p.length - n)) short(file);
      n += count;
    }
  }

  write(file: number, offset: number, p: Uint8Array): void {
    put(this.#handle(file), offset, p);
  }

  truncate(file: number, size: number): void {
    this.#handle(file).truncate(size);
  }

  sync(file: number): void {
    this.#handle(file).flush();
  }

  close(): void {
    for (const h of this.#handles) h.close();
  }
}

class PrivateFolder implements Folder {
  #folder: FileSystemDirectoryHandle;

  constructor(folder: FileSystemDirectoryHandle) {
    this.#folder = folder;
  }

  async list(): Promise<string[]> {
    const names: string[] = [];
    for await (const name of (this.#folder as unknown as { keys(): AsyncIterable<string> }).keys()) names.push(name);
    return names.filter((name) => !name.endsWith(partial));
  }

  async read(name: string): Promise<Uint8Array<ArrayBuffer>> {
    const file = await (await this.#folder.getFileHandle(name)).getFile();
    return new Uint8Array(await file.arrayBuffer());
  }

  async write(name: string, data: Uint8Array<ArrayBuffer>): Promise<void> {
    const file = await this.#folder.getFileHandle(name + partial, { create: true });
    const handle = await exclusive(file, 0);
    try {
      handle.truncate(0);
      put(handle, 0, data);
      handle.flush();
    } finally {
      handle.close();
    }
    await (file as unknown as { move(name: string): Promise<void> }).move(name);
  }

  remove(name: string): Promise<void> {
    return this.#folder.removeEntry(name);
  }
}

/**
 * Reports whether a result is a number of bytes. Instead of throwing, a handle of Chromium in a private window returns its error code as an
 * unsigned number: 4294967288 means that the quota is exceeded.
 */
const isCount = (result: number, most: number): boolean => result > 0 && result <= most;

function put(h: Handle, offset: number, p: Uint8Array): void {
  for (let n = 0; n < p.length; ) {
    const written = h.write(p.subarray(n), { at: offset + n });
    if (!isCount(written, p.length - n)) throw new StoreError(storeCodes.full, 'the device takes no more');
    n += written;
  }
}

async function exclusive(file: FileSystemFileHandle, until: number): Promise<Handle> {
  const opens = file as unknown as { createSyncAccessHandle(): Promise<Handle> };
  for (;;) {
    try {
      return await opens.createSyncAccessHandle();
    } catch (failure) {
      if ((failure as Error).name !== 'NoModificationAllowedError' || performance.now() > until) throw failure;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
