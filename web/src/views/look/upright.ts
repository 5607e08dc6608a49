// Browsers ignore an orientation that is a LONG, and one in a PNG whose Exif begins as in a JPEG. The recogniser and hosted copies use both.

const headBytes = 256 << 10; // cameras write the orientation before the pixels
const exifStart = 'Exif\0\0';
const orientationTag = 274;

/** Returns a copy of a picture whose orientation browsers use, for display. Other pictures are returned unchanged. */
export async function upright(blob: Blob): Promise<Blob> {
  const head = new Uint8Array(await blob.slice(0, headBytes).arrayBuffer());
  const text = (at: number, n: number) => String.fromCharCode(...head.subarray(at, at + n));
  const view = new DataView(head.buffer);
  const isPNG = text(0, 4) === '\x89PNG';
  if (!isPNG && text(0, 2) !== '\xff\xd8') return blob;
  for (let at = isPNG ? 8 : 2; at + 12 <= head.length; ) {
    const size = isPNG ? view.getUint32(at) : view.getUint16(at + 2) - 2; // of the body
    const body = at + (isPNG ? 8 : 4);
    const end = body + size + (isPNG ? 4 : 0);
    const kind = isPNG ? text(at + 4, 4) : text(at, 2);
    if (size < 0 || end > head.length || kind === 'IDAT' || kind === '\xff\xda' || !(isPNG || kind[0] === '\xff'))
      break;
    const begins = text(body, 6) === exifStart;
    if (isPNG ? kind === 'eXIf' : kind === '\xff\xe1' && begins) {
      const orientation = orientationOf(new DataView(head.buffer, body + (begins ? 6 : 0), size - (begins ? 6 : 0)));
      if (!orientation) break;
      const part = isPNG ? chunk(orientation) : segment(orientation);
      return new Blob([head.subarray(0, at), part, blob.slice(end)], { type: blob.type });
    }
    at = end;
  }
  return blob;
}

/** Returns the orientation in the first directory of Exif data, or 0. */
function orientationOf(exif: DataView): number {
  if (exif.byteLength < 8) return 0;
  const little = exif.getUint16(0) === 0x4949;
  const first = exif.getUint32(4, little);
  if (exif.getUint16(2, little) !== 42 || first < 8 || first + 2 > exif.byteLength) return 0;
  const end = Math.min(exif.byteLength, first + 2 + 12 * exif.getUint16(first, little));
  for (let at = first + 2; at + 12 <= end; at += 12) {
    if (exif.getUint16(at, little) !== orientationTag) continue;
    const type = exif.getUint16(at + 2, little);
    const value = type === 3 ? exif.getUint16(at + 8, little) : type === 4 ? exif.getUint32(at + 8, little) : 0;
    return exif.getUint32(at + 4, little) === 1 && value <= 8 ? value : 0;
  }
  return 0;
}

/** Returns Exif data that only contains an orientation. */
const exifOf = (orientation: number) => [
  ...[
    0x49,
    0x49,
    42,
    0,
    8,
    0,
    0,
    0,
    1,
    0,
    orientationTag & 255,
    orientationTag >> 8,
    3,
    0,
    1,
    0,
    0,
    0,
    orientation,
    0,
    0,
    0,
  ],
  ...[0, 0, 0, 0],
];

function segment(orientation: number): Uint8Array<ArrayBuffer> {
  const body = [...[...exifStart].map((c) => c.charCodeAt(0)), ...exifOf(orientation)];
  return Uint8Array.of(0xff, 0xe1, 0, 2 + body.length, ...body);
}

function chunk(orientation: number): Uint8Array<ArrayBuffer> {
  const body = [...[...'eXIf'].map((c) => c.charCodeAt(0)), ...exifOf(orientation)];
  let sum = -1;
  for (const byte of body) {
    sum ^= byte;
    for (let i = 0; i < 8; i++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  const crc = [24, 16, 8, 0].map((shift) => (~sum >>> shift) & 255);
  return Uint8Array.of(0, 0, 0, body.length - 4, ...body, ...crc);
}
