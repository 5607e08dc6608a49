import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unzip, ZipError } from './zip';
import { zipOf } from './zip.testkit';

const isProblem = (problem: string) => (failure: unknown) => failure instanceof ZipError && failure.problem === problem;
const long = 'picture '.repeat(50_000);

test('a damaged entry fails, and the others are read', async () => {
  const files = await unzip(
    zipOf([
      { name: 'a', text: long, packed: true },
      { name: 'b', text: 'x', crc: 7 },
      { name: 'a', text: 'second' },
    ]),
  );
  assert.deepEqual(
    files.map(({ name }) => name),
    ['a', 'b', 'a'],
  );
  const [a, b, again] = files as [(typeof files)[0], (typeof files)[0], (typeof files)[0]];
  assert.equal(Buffer.from(await a.bytes(1e6)).toString(), long);
  assert.equal(Buffer.from(await a.start(10)).toString(), 'picture pi');
  await assert.rejects(b.bytes(10), isProblem('damaged'));
  assert.equal(Buffer.from(await again.bytes(10)).toString(), 'second');
});

test('an entry that unpacks to more than the limit fails', async () => {
  const [file] = await unzip(zipOf([{ name: 'a', text: new Uint8Array(50_000_000), packed: true }]));
  await assert.rejects(file?.bytes(1_000_000) as Promise<unknown>, isProblem('large'));
  assert.equal((await file?.start(1024))?.length, 1024);
});

test('a file that is not a zip, or lacks its end, is damaged', async () => {
  await assert.rejects(unzip(new Blob(['no zip'])), isProblem('damaged'));
  const whole = zipOf([{ name: 'a', text: long }]);
  await assert.rejects(unzip(whole.slice(0, whole.size - 30)), isProblem('damaged'));
  await assert.rejects(unzip(whole.slice(10)), isProblem('damaged'));
  const [file] = await unzip(new Blob(['before', whole])); // as in a program that unpacks itself
  assert.equal((await file?.bytes(1e6))?.length, long.length);
});
