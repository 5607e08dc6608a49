// Test pictures that a decoding module decodes, with the SHA-256 of their renditions, which is the same at every host.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

const read = (name) => readFileSync(new URL(`../../../core/predict/raster/${name}`, import.meta.url));

const renditions = {
  'heif/testdata/alpha.avif': '068af5b2ed02b68f6107824e607948652ca6ebe8372709d9f5896df708956693',
  'heif/testdata/alpha.heic': 'd8d8421410bb03e4738627dc464ab80c8273f1115d000da0be7ade08233818cd',
  'heif/testdata/deep.heic': '36656d85ed70d6a01358dc192f388369f6e0183b4c15931e670026095c5e3219',
  'heif/testdata/gray.avif': '2072fe2d598969b9132280418bf3c331a1237fa8a175d3ac6da85649d5f4e8d8',
  'heif/testdata/grid.avif': 'ffd9076039737598e932ae259fc7f0cad5cf84e644bf1faf8f7f16f807f2b279',
  'heif/testdata/identity.avif': '527f1d0bc45b557427094fddfbc4d6064dfde925fb3b8cc87e4c80965b841c25',
  'heif/testdata/plain.heic': 'd9f234caeda445a828a8c40afc654d6ba35bb45a2e22c4b945e8d5ec64580ec0',
  'heif/testdata/turned.avif': 'd5edafce69785924f4703e52b90772779fc3ad2e750d2b40f7c92c836ea0202a',
  'testdata/jxl/a98.jxl': '57a232a7a18c1d3f3a4f66961a91dbef347dc40fe71aa2ab76da6579982babb5',
  'testdata/jxl/deep.jxl': '1c47ef05f7a21a318853a61b6c5560e99d50bf35503c74a72e39e0cb1bc4b6fa',
  'testdata/jxl/icc-lossless.jxl': '394834815172a21c1ba1b2cc4c798ee0b9fe055278e5af404a50c4ca1dafa80b',
  'testdata/jxl/rgba.jxl': '218133d7aaa0e1f91a336e054be22f5e1c1dc5b011e0907f55ded376ec242754',
  'testdata/jxl/turned.jxl': 'fae7a2ab698debadfa17a6e09bd8f69627874f6c4e3c135bb1614a6b39f24431',
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
