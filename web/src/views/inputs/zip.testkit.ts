// Writes zip files for tests, with any names and flags.
import { deflateRawSync } from 'node:zlib';

/** An entry of a zip. */
export interface Entry {
  readonly hex?: string; // name
  readonly name?: string; // name as UTF-8, without the flag
  readonly text: string | Uint8Array;
  readonly flags?: number;
  readonly unicode?: string; // hexadecimal, the Unicode Path field
  readonly wrong?: boolean; // the field belongs to another name
  readonly madeBy?: number;
  readonly mode?: number;
  readonly packed?: boolean;
  readonly crc?: number;
}

function crc32(bytes: Uint8Array): number {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let k = 0; k < 8; k++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return ~crc >>> 0;
}

/** Returns a zip with entries. */
export function zipOf(entries: readonly Entry[]): Blob {
  const [locals, directory]: [Buffer[], Buffer[]] = [[], []];
  let offset = 0;
  for (const entry of entries) {
    const name = entry.hex !== undefined ? Buffer.from(entry.hex, 'hex') : Buffer.from(entry.name ?? '');
    const text = Buffer.from(entry.text as string);
    const data = entry.packed ? deflateRawSync(text) : text;
    const path = Buffer.from(entry.unicode ?? '', 'hex');
    const extra = path.length ? Buffer.alloc(9) : Buffer.alloc(0);
    if (path.length) {
      extra.writeUInt16LE(0x7075, 0);
      extra.writeUInt16LE(5 + path.length, 2);
      extra.writeUInt8(1, 4);
      extra.writeUInt32LE((crc32(name) + (entry.wrong ? 1 : 0)) % 2 ** 32, 5);
    }
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(entry.flags ?? 0, 2);
    common.writeUInt16LE(entry.packed ? 8 : 0, 4);
    common.writeUInt32LE(entry.crc ?? crc32(text), 10);
    common.writeUInt32LE(data.length, 14);
    common.writeUInt32LE(text.length, 18);
    common.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, name, data]);
    common.writeUInt16LE(extra.length + path.length, 24);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(((entry.mode ?? 0) * 2 ** 16) >>> 0, 6);
    rest.writeUInt32LE(offset, 10);
    directory.push(Buffer.from('PK\x01\x02'), Buffer.from([20, entry.madeBy ?? 0]), common, rest, name, extra, path);
    locals.push(local);
    offset += local.length;
  }
  const size = directory.reduce((sum, part) => sum + part.length, 0);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(entries.length, 4);
  end.writeUInt16LE(entries.length, 6);
  end.writeUInt32LE(size, 8);
  end.writeUInt32LE(offset, 12);
  return new Blob([...locals, ...directory, Buffer.from('PK\x05\x06'), end] as BlobPart[]);
}
