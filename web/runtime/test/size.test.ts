import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { brotliCompressSync, constants } from 'node:zlib';
import { root } from './root.ts';

/**
 * The maximum size in bytes of the compressed module that `make build` writes. A release compresses it by a further seventh. The headers of
 * HEIC, AVIF, JPEG XL and camera raw and the planes of their decoders took 54 kB. The dates and places of files took 25 kB,
 * contradictions 31 kB.
 */
const maxSize = 2_600_000;

test('the module is small', () => {
  const module = readFileSync(join(root, 'wasm', 'dist', 'guest.wasm'));
  const params = { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_LGWIN]: 22 };
  const size = brotliCompressSync(module, { params }).length;
  assert.ok(size <= maxSize, `${size} bytes compressed, want at most ${maxSize}`);
});
