// Reads the files of a zip without holding the whole archive in memory. It reads names as the import command does.

/** Why a file of a zip cannot be read. */
export type ZipProblem = 'link' | 'encrypted' | 'damaged' | 'large';

/** An error of one file of a zip. */
export class ZipError extends Error {
  readonly problem: ZipProblem;

  constructor(problem: ZipProblem) {
    super(`zip: ${problem}`);
    this.problem = problem;
  }
}

/** A file of a zip. */
export interface ZipFile {
  readonly name: string; // path with slashes, without drive letter and ".."
  /** Returns the first bytes of the file, at most n. */
  start(n: number): Promise<Uint8Array<ArrayBuffer>>;
  /** Returns the bytes of the file. If there are more than n, it throws. */
  bytes(n: number): Promise<Uint8Array<ArrayBuffer>>;
}

const [endSize, end64Size] = [22, 20];
const signatures = { entry: 0x02014b50, local: 0x04034b50, end: 0x06054b50, end64: 0x06064b50, locator: 0x07064b50 };
const flags = { encrypted: 1, utf8: 0x800 };
const madeBy = { fat: 0, unix: 3, ntfs: 10, vfat: 14, mac: 19 };

const slice = async (blob: Blob, from: number, to: number) =>
  new DataView(await blob.slice(Math.max(0, from), to).arrayBuffer());

/** Returns the files of a zip in the order of its directory. */
export async function unzip(archive: Blob): Promise<ZipFile[]> {
  const directory = await directoryOf(archive);
  const files: ZipFile[] = [];
  for (let at = 0; at + 46 <= directory.view.byteLength; ) {
    const { view } = directory;
    if (view.getUint32(at, true) !== signatures.entry) throw new ZipError('damaged');
    const sizeAt = (n: number) => view.getUint16(at + n, true);
    const [nameSize, extraSize, noteSize] = [sizeAt(28), sizeAt(30), sizeAt(32)];
    const part = (from: number, size: number) => new Uint8Array(view.buffer, view.byteOffset + at + from, size);
    const [rawName, extra] = [part(46, nameSize), part(46 + nameSize, extraSize)];
    const entry = new Entry(archive, view, at, extra, directory.shift);
    const name = pathOf(nameOf(rawName, entry.flags, entry.madeBy, extra));
    if (name && !entry.isFolder && !/[/\\]$/.test(latin1(rawName))) files.push(entry.named(name));
    at += 46 + nameSize + extraSize + noteSize;
  }
  return files;
}

/** Returns the directory of a zip, and the number of bytes before the archive in the file. */
async function directoryOf(archive: Blob): Promise<{ view: DataView; shift: number }> {
  const from = Math.max(0, archive.size - endSize - 0xffff);
  const tail = await slice(archive, from, archive.size);
  let at = tail.byteLength - endSize;
  while (at >= 0 && tail.getUint32(at, true) !== signatures.end) at--;
  if (at < 0) throw new ZipError('damaged');
  let [size, offset] = [tail.getUint32(at + 12, true), tail.getUint32(at + 16, true)];
  let endsAt = from + at;
  const locator = at - end64Size;
  if (locator >= 0 && tail.getUint32(locator, true) === signatures.locator) {
    endsAt = Number(tail.getBigUint64(locator + 8, true));
    const end64 = await slice(archive, endsAt, endsAt + 56);
    if (end64.byteLength < 56 || end64.getUint32(0, true) !== signatures.end64) throw new ZipError('damaged');
    [size, offset] = [Number(end64.getBigUint64(40, true)), Number(end64.getBigUint64(48, true))];
  }
  const shift = endsAt - size - offset;
  if (shift < 0) throw new ZipError('damaged');
  return { view: await slice(archive, endsAt - size, endsAt), shift };
}

class Entry {
  readonly archive: Blob;
  readonly flags: number;
  readonly madeBy: number;
  readonly isFolder: boolean;
  readonly #isLink: boolean;
  readonly #method: number;
  readonly #crc: number;
  #packed: number; // bytes in the archive
  #size: number;
  #offset: number;

  constructor(archive: Blob, view: DataView, at: number, extra: Uint8Array, shift: number) {
    this.archive = archive;
    this.madeBy = view.getUint8(at + 5);
    this.flags = view.getUint16(at + 8, true);
    this.#method = view.getUint16(at + 10, true);
    this.#crc = view.getUint32(at + 16, true);
    this.#packed = view.getUint32(at + 20, true);
    this.#size = view.getUint32(at + 24, true);
    this.#offset = view.getUint32(at + 42, true);
    const field = fieldOf(extra, 1); // sizes of 64 bits
    let next = 0;
    const wide = (value: number) => {
      if (value !== 0xffffffff || !field || next + 8 > field.byteLength) return value;
      next += 8;
      return Number(field.getBigUint64(next - 8, true));
    };
    this.#size = wide(this.#size);
    this.#packed = wide(this.#packed);
    this.#offset = wide(this.#offset) + shift;
    const attributes = view.getUint32(at + 38, true);
    const isUnix = this.madeBy === madeBy.unix || this.madeBy === madeBy.mac;
    const isDos = this.madeBy === madeBy.fat || this.madeBy === madeBy.ntfs || this.madeBy === madeBy.vfat;
    this.#isLink = isUnix && attributes >>> 28 === 0xa;
    this.isFolder = (isUnix && attributes >>> 28 === 4) || (isDos && (attributes & 0x10) !== 0);
  }

  named(name: string): ZipFile {
    return { name, start: (n) => this.#read(n, 'start'), bytes: (n) => this.#read(n, 'all') };
  }

  async #read(most: number, part: 'start' | 'all'): Promise<Uint8Array<ArrayBuffer>> {
    if (this.#isLink) throw new ZipError('link');
    if (this.flags & flags.encrypted) throw new ZipError('encrypted');
    if (this.#method !== 0 && this.#method !== 8) throw new ZipError('damaged');
    const head = await slice(this.archive, this.#offset, this.#offset + 30);
    if (head.byteLength < 30 || head.getUint32(0, true) !== signatures.local) throw new ZipError('damaged');
    const from = this.#offset + 30 + head.getUint16(26, true) + head.getUint16(28, true);
    const packed = this.archive.slice(from, from + this.#packed);
    const [chunks, size] = await inflated(packed, this.#method, most);
    if (part === 'start') return joined(chunks, Math.min(size, most));
    if (size > most) throw new ZipError('large');
    const bytes = joined(chunks, size);
    if (size !== this.#size || crc32(bytes) !== this.#crc) throw new ZipError('damaged');
    return bytes;
  }
}

/** Unpacks until there are more than `most` bytes. Returns the chunks and their size. */
async function inflated(packed: Blob, method: number, most: number): Promise<[Uint8Array[], number]> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const take = (chunk: Uint8Array) => {
    chunks.push(chunk.slice()); // copied, because fflate reuses the memory
    size += chunk.length;
  };
  const { Inflate } = await import('fflate');
  const inflate = new Inflate(take);
  const reader = packed.stream().getReader();
  try {
    while (size <= most) {
      const { done, value } = await reader.read();
      if (done) break;
      // Parts of 4 kB bound what one part can unpack to.
      for (let at = 0; at < value.length && size <= most; at += 4096) {
        const piece = value.subarray(at, at + 4096);
        if (method === 0) take(piece);
        else inflate.push(piece);
      }
    }
  } catch (failure) {
    // The start of a damaged file may show what the file is. The whole has the wrong size.
    if (failure instanceof DOMException) throw failure;
  } finally {
    await reader.cancel().catch(() => {});
  }
  return [chunks, size];
}

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    const rest = chunk.subarray(0, size - at);
    all.set(rest, at);
    at += rest.length;
  }
  return all;
}

/** Returns an extra field. */
function fieldOf(extra: Uint8Array, id: number): DataView | undefined {
  const view = new DataView(extra.buffer, extra.byteOffset, extra.byteLength);
  for (let at = 0; at + 4 <= view.byteLength; ) {
    const size = view.getUint16(at + 2, true);
    if (at + 4 + size > view.byteLength) return;
    if (view.getUint16(at, true) === id) return new DataView(extra.buffer, extra.byteOffset + at + 4, size);
    at += 4 + size;
  }
  return;
}

const latin1 = (bytes: Uint8Array) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');

function utf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return;
  }
}

/** Returns a name as text. Each byte that is not UTF-8 becomes an escape such as \xe9. */
function escaped(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; ) {
    const size = [1, 2, 3, 4].find((n) => at + n <= bytes.length && utf8(bytes.subarray(at, at + n)) !== undefined);
    text += size ? utf8(bytes.subarray(at, at + size)) : `\\x${bytes[at]?.toString(16).padStart(2, '0')}`;
    at += size ?? 1;
  }
  return text;
}

// The upper half of code page 437.
const cp437 =
  'ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u00a0';

/** Replaces backslashes before the name gets escapes. */
const slashed = (bytes: Uint8Array) => bytes.map((byte) => (byte === 0x5c ? 0x2f : byte));

function nameOf(raw: Uint8Array, flag: number, creator: number, extra: Uint8Array): string {
  if (flag & flags.utf8) return escaped(slashed(raw));
  const field = fieldOf(extra, 0x7075); // Unicode Path: a version, the CRC-32 of the other name, and UTF-8
  if (field && field.byteLength > 5 && field.getUint8(0) === 1 && field.getUint32(1, true) === crc32(raw)) {
    const name = utf8(slashed(new Uint8Array(field.buffer, field.byteOffset + 5, field.byteLength - 5)));
    if (name !== undefined) return name;
  }
  // Programs of Unix and macOS write UTF-8 without the flag.
  const name = slashed(raw);
  const text = creator === madeBy.unix || creator === madeBy.mac ? utf8(name) : undefined;
  return text ?? latin1(name).replace(/[\x80-\xff]/g, (c) => cp437.charAt(c.charCodeAt(0) - 0x80));
}

/** Returns a name as a path below the archive, or "" for none. */
function pathOf(name: string): string {
  const path: string[] = [];
  for (const part of name.replace(/^[A-Za-z]:\//, '').split('/')) {
    if (part === '..') path.pop();
    else if (part && part !== '.') path.push(part);
  }
  return path.join('/');
}

const crcTable = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; k++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
  return n;
});

function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crcTable[(crc ^ byte) & 0xff] ?? 0) ^ (crc >>> 8);
  return ~crc >>> 0;
}
