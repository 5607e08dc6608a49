// Reads the place in the metadata of a picture's file.
import type { Point } from '../../clauses';

const searched = 4 << 20; // bytes at the start and at the end of a file that are searched for Exif
const exifBytes = 256 << 10;
const tries = 16;

/** Returns the place in a picture's file; undefined if it has none, or if it is damaged. */
export async function placeOf(bytes: ArrayBuffer): Promise<Point | undefined> {
  const { gps } = await import('exifr');
  const read = async (part: ArrayBuffer): Promise<Point | undefined> => {
    try {
      const at = await gps(part);
      return Number.isFinite(at?.latitude) && Number.isFinite(at?.longitude) && (at.latitude || at.longitude)
        ? { latitude: at.latitude, longitude: at.longitude }
        : undefined;
    } catch {
      return undefined; // it has no such metadata, or is damaged
    }
  };
  const found = await read(bytes);
  if (found || isComplete(bytes)) return found;
  // The library knows neither JPEG XL nor most camera raw. All of them contain the structure of TIFF.
  for (const from of exifOffsets(new Uint8Array(bytes))) {
    const place = await read(tiffAt(bytes, from));
    if (place) return place;
  }
  return undefined;
}

/** Reports whether the library reads all metadata of a file: JPEG, PNG, GIF and WebP. */
function isComplete(bytes: ArrayBuffer): boolean {
  const start = String.fromCharCode(...new Uint8Array(bytes, 0, Math.min(4, bytes.byteLength)));
  return ['\xff\xd8\xff', '\x89PNG', 'GIF8', 'RIFF'].some((signature) => start.startsWith(signature));
}

/** Yields the offsets of the first structures of TIFF, also those of Olympus and Panasonic. */
function* exifOffsets(all: Uint8Array): Generator<number> {
  let left = tries;
  const parts: [from: number, to: number][] = [[0, Math.min(searched, all.length)]];
  if (all.length > searched) parts.push([Math.max(searched, all.length - searched), all.length]);
  for (const [from, to] of parts) {
    for (let at = from; at + 8 <= to && left > 0; at++) {
      const first = all[at];
      if (first !== all[at + 1] || (first !== 0x49 && first !== 0x4d)) continue;
      const [a, b] = first === 0x49 ? [all[at + 2], all[at + 3]] : [all[at + 3], all[at + 2]];
      const isTIFF = b === 0 && (a === 42 || (a === 0x55 && at === 0));
      if (!isTIFF && !(at === 0 && (a === 0x52 || a === 0x4f))) continue;
      left--;
      yield at;
    }
  }
}

/** Returns the structure at an offset with the signature that the library knows. */
function tiffAt(bytes: ArrayBuffer, from: number): ArrayBuffer {
  const part = bytes.slice(from, from === 0 ? searched : from + exifBytes);
  const view = new DataView(part);
  view.setUint16(2, 42, view.getUint16(0) === 0x4949);
  return part;
}
