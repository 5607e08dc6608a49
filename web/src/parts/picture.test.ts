import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findMissing, showIn } from './picture';

const advanceTime = async (t: { mock: { timers: { tick: (ms: number) => void } } }, ms: number) => {
  t.mock.timers.tick(ms);
  for (let n = 0; n < 4; n++) await Promise.resolve();
};

/** Returns the used part of an image element, and a list for the recorded reports. */
function element() {
  const img = {
    src: '',
    onload: null as (() => void) | null,
    onerror: null as (() => void) | null,
    removeAttribute: () => (img.src = ''),
  };
  return { img, reports: [] as boolean[] };
}

const showElement = (e: ReturnType<typeof element>, find: () => Promise<string>) =>
  showIn(e.img as unknown as HTMLImageElement, find, (isUnavailable) => e.reports.push(isUnavailable));

test('a missing picture is requested again after growing pauses, and then each minute', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const e = element();
  let requests = 0;
  const end = showElement(e, () => {
    requests++;
    return Promise.reject(new Error('404'));
  });
  const seen: number[] = [];
  for (const ms of [16, 1016, 4016, 15_016, 60_016, 60_016]) {
    await advanceTime(t, ms);
    await advanceTime(t, 16);
    seen.push(requests);
  }
  assert.deepEqual(seen, [1, 2, 3, 4, 5, 6]);
  assert.deepEqual([e.img.src, e.reports.at(-1)], ['', true]);
  end();
  await advanceTime(t, 120_000);
  findMissing();
  await advanceTime(t, 16);
  assert.equal(requests, 6, 'nobody asks for what is shown no more');
});

test('a missing picture is requested at once when it may be available', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const e = element();
  let isAvailable = false;
  const end = showElement(e, () =>
    isAvailable ? Promise.resolve('blob:a') : Promise.reject(new Error('not reached')),
  );
  await advanceTime(t, 16);
  assert.deepEqual(e.reports, [true]);
  isAvailable = true;
  findMissing();
  await advanceTime(t, 16);
  assert.equal(e.img.src, 'blob:a');
  e.img.onload?.();
  assert.deepEqual(e.reports, [true, false]);
  end();
});

test('a picture with a known URL is loaded at once', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { img } = element();
  const end = showIn(img as unknown as HTMLImageElement, '/samples/a.jpg');
  assert.equal(img.src, '/samples/a.jpg');
  img.onerror?.();
  assert.equal(img.src, '');
  await advanceTime(t, 1000);
  assert.equal(img.src, '/samples/a.jpg');
  end();
});

test('a picture that cannot be drawn is hidden and loaded again', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const e = element();
  const addresses = ['blob:gone', 'blob:new'];
  const end = showElement(e, () => Promise.resolve(addresses.shift() as string));
  await advanceTime(t, 16);
  assert.equal(e.img.src, 'blob:gone');
  e.img.onerror?.();
  assert.deepEqual([e.img.src, e.reports], ['', [true]]);
  await advanceTime(t, 1000);
  await advanceTime(t, 16);
  assert.equal(e.img.src, 'blob:new');
  end();
  assert.deepEqual([e.img.onload, e.img.onerror], [null, null]);
});
