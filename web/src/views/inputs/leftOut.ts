// Recognises the files that an import leaves out, by their paths, and pictures and videos, by their first bytes. The import command has the
// same table and the same signatures: leftOut.test.ts compares both with origin/server/collection/testdata/leftout.json.

/** Why an import leaves a file out on purpose. */
export type Reason = 'sidecars' | 'thumbnails' | 'hidden' | 'system' | 'unknown';

/** Names in lower case. */
export const table = {
  sidecar_endings: '.xmp .aae .json .pp3 .dop .cos .cop .cot .nksc .on1 .vrd .arp .spd .exif'.split(' '),
  thumbnail_folders:
    '@eadir .@__thumb #recycle @recycle #snapshot @recently-snapshot .thumbnails .picasaoriginals'.split(' '),
  system_names: [
    ...'.ds_store thumbs.db ehthumbs.db desktop.ini __macosx $recycle.bin'.split(' '),
    'system volume information',
    ...'lost+found .spotlight-v100 .trashes .fseventsd .temporaryitems .documentrevisions-v100 .apdisk .volumeicon.icns'.split(
      ' ',
    ),
    'icon\r',
  ],
  system_prefixes: '._ .trash- .fuse_hidden .nfs'.split(' '),
  picture_endings:
    '.jpg .jpeg .jpe .jfif .png .gif .webp .bmp .dib .tif .tiff .heic .heif .hif .avif .jxl .cr2 .cr3 .crw .nef .nrw .arw .sr2 .srf .dng .orf .rw2 .raf .pef .srw .mrw .x3f'.split(
      ' ',
    ),
};

const endingOf = (path: string) => path.match(/\.[^./]*$/)?.[0].toLowerCase() ?? '';

/** Returns why an import leaves out the file with a path, or undefined if it does not. */
export function reasonFor(path: string): Reason | undefined {
  for (const part of path.toLowerCase().split('/')) {
    if (table.thumbnail_folders.includes(part)) return 'thumbnails';
    if (table.system_names.includes(part) || table.system_prefixes.some((p) => part.startsWith(p))) return 'system';
    if (part.startsWith('.')) return 'hidden';
  }
  return table.sidecar_endings.includes(endingOf(path)) ? 'sidecars' : undefined;
}

/** Reports whether a file's ending is that of a picture. */
export const isNamedPicture = (path: string): boolean => table.picture_endings.includes(endingOf(path));

/** The number of bytes that kindOf needs. */
export const startBytes = 1024;

// First bytes, as Latin-1. A ? matches any byte.
const pictures = [
  '\xff\xd8\xff',
  '\x89PNG\r\n\x1a\n',
  'GIF87a',
  'GIF89a',
  'RIFF????WEBP',
  'II*\0',
  'MM\0*',
  'II+\0',
  'MM\0+',
  'IIRO',
  'IIRS',
  'MMOR',
  'IIU\0',
  'FUJIFILMCCD-RAW ',
  '\0MRM',
  'FOVb',
  'II\x1a\0\0\0HEAPCCDR',
  '\xff\x0a',
  '????JXL \r\n\x87\n',
  '????jP  \r\n\x87\n',
  '\xff\x4f\xff\x51',
  '8BPS',
  '\0\0\x01\0',
];
const videos = [
  '\0???moov',
  '\0???mdat',
  '\0???wide',
  '\x1a\x45\xdf\xa3',
  'RIFF????AVI ',
  '\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\0\xaa\0\x62\xce\x6c',
  '\0\0\x01\xba',
  '\0\0\x01\xb3',
  'OggS',
  'FLV\x01',
];
const pictureBrands = 'avif avis heic heix heim heis hevc hevx mif1 msf1'.split(' ');

/** Returns the kind of a file that begins with these bytes; undefined: neither a picture nor a video. */
export function kindOf(start: Uint8Array): 'picture' | 'video' | undefined {
  const text = Array.from(start.subarray(0, startBytes), (byte) => String.fromCharCode(byte)).join('');
  const begins = (magic: string) =>
    text.length >= magic.length && [...magic].every((c, i) => c === '?' || c === text[i]);
  if (text.startsWith('ftyp', 4)) return isPictureBox(text) ? 'picture' : 'video';
  if (begins('BM')) return isBMP(text) ? 'picture' : undefined;
  if (pictures.some(begins)) return 'picture';
  const hasPackets = (at: number, size: number) => [0, 1, 2].every((n) => text[at + n * size] === 'G');
  return videos.some(begins) || hasPackets(0, 188) || hasPackets(4, 192) ? 'video' : undefined;
}

function isBMP(text: string): boolean {
  const size = text.charCodeAt(14);
  return text.length === 2 || ([12, 16, 40, 52, 56, 64, 108, 124].includes(size) && text.startsWith('\0\0\0', 15));
}

/** Reports whether the brands in the first box of a file are those of a picture. The second is the minor version. */
function isPictureBox(text: string): boolean {
  const size = [0, 1, 2, 3].reduce((sum, i) => sum * 256 + text.charCodeAt(i), 0);
  const brands = text.slice(8, Math.min(Math.max(8, size), 256)).match(/.{4}/gs) ?? [];
  return brands[0] === 'crx ' || brands.some((brand, i) => i !== 1 && pictureBrands.includes(brand));
}
