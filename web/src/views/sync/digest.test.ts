import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compare, decodeDigest } from './digest';

const field = (number: number, bytes: number[]): number[] => [number * 8 + 2, bytes.length, ...bytes];

test('a digest has the epoch, the entry and the hash', () => {
  const epoch = Array.from({ length: 16 }, (_, i) => i);
  const hash = Array.from({ length: 32 }, (_, i) => 255 - i);
  assert.deepEqual(decodeDigest(Uint8Array.from([1, ...field(1, epoch), 16, 0xac, 0x02, ...field(3, hash)])), {
    epoch: '000102030405060708090a0b0c0d0e0f',
    seq: 300,
    digest: Buffer.from(hash).toString('hex'),
  });
});

test('bytes other than a digest are refused', () => {
  for (const message of [
    [1, 10, 16, 1],
    [1, 16, 0x80],
    [1, 9, 1, 2],
    [1, 16, 3],
  ]) {
    assert.throws(() => decodeDigest(Uint8Array.from(message)), /digest/, String(message));
  }
});

test('digests at two positions of a log are not compared', () => {
  const one = { epoch: 'e', seq: 3, digest: 'r' };
  assert.equal(compare(one, { ...one }), 'equal');
  assert.equal(compare(one, { ...one, digest: 's' }), 'differ');
  assert.equal(compare(one, { ...one, seq: 4 }), 'elsewhere');
  assert.equal(compare(one, { ...one, epoch: 'f', digest: 's' }), 'elsewhere');
});
