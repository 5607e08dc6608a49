import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import test from 'node:test';
import { codes } from '../src/messages.ts';
import { Pool } from '../src/pool.ts';

const idle = 60_000;
const picture = new Uint8Array([1]);

/** A pool whose clock a test advances by `pass`, and its open analysers. `network` returns the answer of `hasSpare`. */
function pool(minSize: 0 | 1, size = 2, network = () => true) {
  let scheduledWork: (() => Promise<void>) | undefined;
  let madeCount = 0;
  const open = new Set<number>();
  const finishers: (() => void)[] = []; // each ends one analysis
  const p = new Pool({
    make: async () => {
      const number = ++madeCount;
      open.add(number);
      return {
        analyse: () => new Promise((done) => finishers.push(() => done(new Uint8Array([1])))),
        close: () => open.delete(number),
      };
    },
    hasSpare: async () => network(),
    size,
    minSize,
    timeout: idle,
    idle,
    later: (milliseconds, work) => {
      assert.equal(milliseconds, idle);
      scheduledWork = work;
      return () => {
        scheduledWork = undefined;
      };
    },
    log: (line) => assert.fail(line),
  });
  return {
    p,
    open,
    madeCount: () => madeCount,
    /** Waits until n analyses run, and ends them. */
    async end(n: number) {
      while (finishers.length < n) await new Promise(setImmediate);
      for (const done of finishers.splice(0, n)) done();
    },
    /** Lets the time pass after which the pool closes idle analysers. */
    async pass() {
      await scheduledWork?.();
      scheduledWork = undefined;
    },
  };
}

for (const minSize of [0, 1] as const)
  test(`${minSize} idle analysers stay open`, async () => {
    const { p, open, madeCount, end, pass } = pool(minSize);
    await p.start();
    assert.equal(open.size, minSize);
    for (let round = 1; round <= 2; round++) {
      const both = [p.run({}, picture, 0), p.run({}, picture, 1)];
      await end(2);
      assert.deepEqual(await Promise.all(both), [{}, {}]);
      assert.equal(open.size, 2);
      await pass();
      assert.equal(open.size, minSize);
      assert.equal(madeCount(), round * (2 - minSize) + minSize);
    }
    p.close();
    assert.equal(open.size, 0);
  });

test('an analyser with a picture is not closed', async () => {
  const { p, open, end, pass } = pool(0, 1);
  const first = p.run({}, picture, 0);
  await end(1);
  await first;
  const second = p.run({}, picture, 0);
  await pass();
  await end(1);
  await second;
  assert.equal(open.size, 1);
  await pass();
  assert.equal(open.size, 0);
});

test('without a network the last analyser stays open', async () => {
  let network = false;
  const { p, open, madeCount, end, pass } = pool(0, 2, () => network);
  const runAll = async (n: number) => {
    const all = Array.from({ length: n }, () => p.run({}, picture, 0));
    await end(n);
    await Promise.all(all);
    await pass();
  };
  await runAll(2);
  assert.equal(open.size, 1);
  await runAll(1);
  assert.equal(madeCount(), 2);
  network = true;
  await runAll(1);
  assert.equal(open.size, 0);
});

test('an aborted call gives up all its waiting pictures, with one listener', async () => {
  const { p, end } = pool(0, 1);
  const call = new AbortController();
  const other = p.run({}, picture, 0);
  const pictures = Array.from({ length: 20 }, (_, n) => p.run({}, picture, n < 10 ? 0 : 1, call.signal));
  assert.equal(getEventListeners(call.signal, 'abort').length, 1);
  call.abort();
  assert.deepEqual(new Set((await Promise.all(pictures)).map((r) => r.error)), new Set([codes.timeout]));
  await end(1);
  assert.deepEqual(await other, {});
  p.close();
});

test('an analyser that decodes has its own time limit, and is closed after it', async () => {
  const late = { error: codes.tooLarge, text: 'picture takes more than 30s to decode' };
  const closed: number[] = [];
  let made = 0;
  const p = new Pool({
    async make() {
      const number = made++;
      return {
        analyse(_, allow) {
          allow(1, late);
          if (number === 0) return new Promise(() => {});
          allow(0); // the decoding has ended
          return new Promise((done) => setTimeout(() => done(new Uint8Array([1])), 10));
        },
        close: () => closed.push(number),
      };
    },
    hasSpare: async () => true,
    size: 1,
    minSize: 0,
    timeout: idle,
    idle,
    later: () => () => {},
    log: (line) => assert.fail(line),
  });
  assert.deepEqual(await p.run({}, picture, 0), late);
  assert.deepEqual(closed, [0]);
  assert.deepEqual(await p.run({}, picture, 0), {});
  p.close();
});
