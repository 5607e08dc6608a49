// Test pictures that a decoding module decodes, with the SHA-256 of their renditions, which is the same at every host.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

const read = (name) => readFileSync(new URL(`../../../core/predict/raster/${name}`, import.meta.url));

const renditions = {
  'heif/testdata/alpha.avif': '9ccd6a660ddf10fb60f37cefc1e2af384d1045346360e880c1d87e93b68b4dc7',
  'heif/testdata/alpha.heic': '2eca7f58e349d860eb71998055c384c753c1aac647cbb20cded84c5700424a41',
  'heif/testdata/deep.heic': 'fb4993b900d4c84790b7076f332ed1be02d31bef19cf32837e423614f7a0f48a',
  'heif/testdata/gray.avif': '8acdb0a24cee8fc001d3e5d62634ba3af8b30939d34c6694504c20aa2dba3a1d',
  'heif/testdata/grid.avif': 'dab874c1c52ca62af6d6d1c94ad51d86f4a8af8b1445b5cf0b0f5a732007eadf',
  'heif/testdata/identity.avif': '614af84fe3e2c089dc6cdf863e53d01000a35a5fe0d55cb8d4b75475f9de6e10',
  'heif/testdata/plain.heic': 'edf98c5670e6276f5a02f3c44e0b4e37fd0b62f095931697750b386550982fc6',
  'heif/testdata/turned.avif': '26d1171c2912d119d5f8d2a22b627b3254f098be411e69ba32bd813a260fed03',
  'testdata/jxl/a98.jxl': 'ec7de88c26f34db2316209e938194911dc079405b8e780649412a9ffbbafcb7c',
  'testdata/jxl/deep.jxl': 'c57cbb5b172f11f265eee364d796d6c4eae314438b7b2d8b2e9f8787dff3e366',
  'testdata/jxl/icc-lossless.jxl': '27412d478e85e46df99eea83ab514861de9d181687ee94c96681991d8675708d',
  'testdata/jxl/rgba.jxl': '8d7cc1ace66a259c9572fa3278fc3ee6b285b01cdb62b6bd5e9bb9b045a12e11',
  'testdata/jxl/turned.jxl': '583af01477a88ba587a830ffc07672198cd35e68c8f5c5941cb2d46b84c553d0',
};

/** The pictures: name, bytes and rendition. */
export const stills = Object.entries(renditions).map(([name, rendition]) => ({ name, data: read(name), rendition }));

/** A JPEG XL of several frames, which takes 1.1 s. */
export const animation = read('testdata/jxl/anim.jxl');

/**
 * Yields damaged copies of the pictures, the same ones each time: of a run of `count`, one byte in most, the end in some, and a zeroed part in
 * the others. Most are JPEG XL, whose decoder starts faster.
 */
export function* damagedStills(count) {
  let state = 54;
  const draw = (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const [quick, slow] = [true, false].map((isJXL) => stills.filter(({ name }) => name.endsWith('.jxl') === isJXL));
  for (let i = 0; i < count; i++) {
    const from = i % 10 ? quick : slow;
    const { name, data } = from[draw(from.length)];
    const copy = Buffer.from(data);
    const at = draw(copy.length);
    const kind = draw(8);
    if (kind > 1) copy[at] ^= 1 << draw(8);
    else if (kind) copy.subarray(at, at + draw(40)).fill(0);
    yield { name, data: kind ? copy : copy.subarray(0, at) };
  }
}

/** The status codes of damaged pictures: success, another type, too large, damaged. */
export const damagedCodes = [10000, 30101, 30105, 30300];

/** Returns the SHA-256 of a blob in hex. */
export async function sha256(blob) {
  return createHash('sha256')
    .update(new Uint8Array(await blob.arrayBuffer()))
    .digest('hex');
}
