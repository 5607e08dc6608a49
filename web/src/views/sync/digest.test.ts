import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { compare, rootOf } from './digest';

const field = (number: number, bytes: number[]): number[] => [number * 8 + 2, bytes.length, ...bytes];

test('the root is the hash of the sixteen children, of which some have no keys', async () => {
  const epoch = Array.from({ length: 16 }, (_, i) => i);
  const full = Array.from({ length: 32 }, (_, i) => 255 - i);
  const children = Array.from({ length: 16 }, (_, i) => (i % 3 ? field(2, full) : []));
  const message = [1, ...field(1, epoch), 16, 0xac, 0x02, ...children.flatMap((child) => field(4, child))];
  const bytes = Array.from({ length: 16 }, (_, i) => (i % 3 ? full : Array(32).fill(0))).flat();
  assert.deepEqual(await rootOf(Uint8Array.from(message)), {
    epoch: '000102030405060708090a0b0c0d0e0f',
    seq: 300,
    root: createHash('sha256').update(Uint8Array.from(bytes)).digest('hex'),
  });
});

test('what is no digest is none', async () => {
  for (const message of [
    [1, 10, 16, 1],
    [1, 16, 0x80],
    [1, 9, 1, 2],
  ]) {
    await assert.rejects(rootOf(Uint8Array.from(message)), /digest/, String(message));
  }
});

test('two places of a log are not compared', () => {
  const one = { epoch: 'e', seq: 3, root: 'r' };
  assert.equal(compare(one, { ...one }), 'equal');
  assert.equal(compare(one, { ...one, root: 's' }), 'differ');
  assert.equal(compare(one, { ...one, seq: 4 }), 'elsewhere');
  assert.equal(compare(one, { ...one, epoch: 'f', root: 's' }), 'elsewhere');
});
