import assert from 'node:assert/strict';
import test from 'node:test';
import { type Entry, selectKernels } from '../src/load.ts';
import { kindOf, relaxedDot } from '../src/relaxed.ts';

const bytes = (word: number) => new Uint8Array(new Int32Array([word]).buffer);
const signedBytes = (word: number) => Array.from(new Int8Array(bytes(word).buffer));
const unsignedBytes = (word: number) => Array.from(bytes(word));

/** Returns the dot product of an engine that reads the second operand by `second`, and converts the sum of two products by `pair`. */
function product(second: (word: number) => number[], pair: (v: number) => number) {
  return (a: number, b: number, sum: number) => {
    const p = signedBytes(a).map((v, i) => v * (second(b)[i] as number));
    return (sum + pair((p[0] as number) + (p[1] as number)) + pair((p[2] as number) + (p[3] as number))) | 0;
  };
}

const exact = (v: number) => v;
const clip = (v: number) => Math.max(-32768, Math.min(32767, v));
const wrap = (v: number) => (v << 16) >> 16;

test('a dot product is used only if it is exact', () => {
  assert.equal(kindOf(product(unsignedBytes, exact)), 'unsigned', 'VPDPBUSD');
  assert.equal(kindOf(product(signedBytes, exact)), 'signed', 'SDOT');
  assert.equal(kindOf(product(unsignedBytes, clip)), undefined, 'VPMADDUBSW');
  assert.equal(kindOf(product(signedBytes, wrap)), undefined, 'SMULL and ADDP');
  assert.equal(
    kindOf((a, b) => product(unsignedBytes, exact)(a, b, 0)),
    undefined,
    'a sum that is lost',
  );
});

test('the dot product of an engine is tested', () => {
  assert.ok([undefined, 'unsigned', 'signed'].includes(relaxedDot()));
});

test('one module of kernels is loaded', () => {
  const entry = (name: string): Entry => ({ name, url: name, size: 1, sha256: '' });
  const files = ['guest.wasm', 'kernels.wasm', 'kernels-relaxed.wasm', 'bundles'].map(entry);
  const names = (of: Entry[]) => of.map((e) => e.name);
  assert.deepEqual(names(selectKernels(files, undefined)), ['guest.wasm', 'kernels.wasm', 'bundles']);
  for (const dot of ['unsigned', 'signed'] as const)
    assert.deepEqual(names(selectKernels(files, dot)), ['guest.wasm', 'kernels-relaxed.wasm', 'bundles']);
  const older = files.filter((e) => e.name !== 'kernels-relaxed.wasm');
  assert.deepEqual(
    names(selectKernels(older, 'unsigned')),
    ['guest.wasm', 'kernels.wasm', 'bundles'],
    'an older server',
  );
});
