import assert from 'node:assert/strict';
import { test } from 'node:test';
import { coalesce } from './coalesce';

test('calls during a round share the next one', async () => {
  let starts = 0;
  const ends: (() => void)[] = [];
  const run = coalesce(() => {
    starts++;
    return new Promise<void>((resolve) => ends.push(resolve));
  });
  let done = 0;
  const calls = [run(), run(), run()].map((one) => one.then(() => done++));
  assert.equal(starts, 1);
  ends.shift()?.();
  await new Promise(setImmediate);
  assert.deepEqual([starts, done], [2, 0], 'those who asked wait for the second');
  ends.shift()?.();
  await Promise.all(calls);
  assert.equal(starts, 2);
  void run();
  assert.equal(starts, 3, 'it runs again when asked later');
});

test('a failed round rejects its callers, and the next round runs', async () => {
  let fails = true;
  const run = coalesce(async () => {
    if (fails) throw new Error('no');
  });
  await assert.rejects(run());
  fails = false;
  await run();
});
