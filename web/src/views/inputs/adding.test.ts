import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import type { Application } from '../../host/application.svelte';
import '../../api/blobs.testkit';
import { v2 } from '../../api/client';
import { Failure } from '../../api/console';
import { Adding, adding } from './adding.svelte';
import type { Source } from './sources';

const answer = (body: object) => Response.json({ status: { code: 10000 }, ...body });
const duplicate = (tier: string) => answer({ duplicates: [{ input: { id: 'older' }, tier }] });

/** Returns an application. Its replica finds a similar input, and its origin finds that both are the same picture, re-encoded. */
function applicationOf() {
  let arrive: (sent: boolean) => void = () => {};
  const arrival = new Promise<boolean>((resolve) => {
    arrive = resolve;
  });
  const app = {
    by: 'device',
    ended: new AbortController().signal,
    offline: false,
    requestCount: 0, // number of requests to the origin
    arrive,
    waitUntilSent: () => arrival,
    write: v2(async (_, init) => {
      const { inputs }: { inputs: { id: string }[] } = JSON.parse(String(init?.body));
      return answer({ inputs: inputs.map(({ id }) => ({ id, status: { code: 30000, description: 'ok' } })) });
    }),
    v2: v2(async () => duplicate('similar')),
    remote: v2(async () => {
      app.requestCount++;
      return duplicate('re_encoded');
    }),
  };
  return app;
}

/** Adds a picture, and returns its entry once the replica has found its duplicate. */
async function addPicture(app: ReturnType<typeof applicationOf>) {
  const adding = new Adding(app as unknown as Application);
  await adding.take([{ name: 'new.jpg', blob: new Blob(['a picture']) } as Source]);
  while (!adding.entries[0]?.twin) await new Promise(setImmediate);
  return adding.entries[0];
}

test('the page asks the origin about an input only after the origin has it', async () => {
  const app = applicationOf();
  const entry = await addPicture(app);
  for (let i = 0; i < 5; i++) await new Promise(setImmediate);
  assert.equal(app.requestCount, 0);
  assert.equal(entry.twin?.tier, 'similar');
  app.arrive(true);
  while (entry.twin?.tier === 'similar') await new Promise(setImmediate);
  assert.deepEqual([app.requestCount, entry.twin], [1, { tier: 're_encoded', id: 'older' }]);
});

test('the answer of the replica stays while the origin is unreachable', async () => {
  const app = applicationOf();
  const entry = await addPicture(app);
  app.arrive(false);
  for (let i = 0; i < 5; i++) await new Promise(setImmediate);
  assert.deepEqual([app.requestCount, entry.twin?.tier], [0, 'similar']);
});

/** Returns an application that stores hashes and metadata by ID, and refuses an ID that exists. */
function storeOf(stored: Record<string, string>) {
  const app = {
    by: 'origin',
    ended: new AbortController().signal,
    calls: 0,
    metadata: {} as Record<string, unknown>,
    waitUntilSent: async () => true,
    write: v2(async (_, init) => {
      app.calls++;
      type Sent = { id: string; data: { image: { base64: string }; metadata?: unknown } };
      const { inputs }: { inputs: Sent[] } = JSON.parse(String(init?.body));
      const items = inputs.map(({ id, data }) => {
        const isTaken = stored[id] !== undefined;
        if (!isTaken) {
          stored[id] = createHash('sha256').update(Buffer.from(data.image.base64, 'base64')).digest('hex');
          app.metadata[id] = data.metadata;
        }
        return { id, status: { code: isTaken ? 30100 : 30000, description: '' } };
      });
      return answer({ inputs: items });
    }),
    v2: v2(async (address) => {
      const url = new URL(address, 'http://here');
      if (url.pathname.endsWith('/duplicates')) return answer({ duplicates: [] });
      app.calls++;
      if (url.pathname === '/v2/inputs/status')
        return answer({ counts: { processed: Object.keys(stored).length, to_process: 0, errors: 0 } });
      if (url.pathname !== '/v2/inputs') {
        const id = decodeURIComponent(url.pathname.replace('/v2/inputs/', ''));
        return answer({ input: { data: { image: { sha256: stored[id] } } } });
      }
      const [page, rows] = [Number(url.searchParams.get('page')), Number(url.searchParams.get('per_page'))];
      const input = ([id, sha256]: [string, string]) => ({ id, data: { image: { sha256 } }, status: { code: 30000 } });
      return answer({
        inputs: Object.entries(stored)
          .map(input)
          .slice((page - 1) * rows, page * rows),
      });
    }),
  };
  return app;
}

async function addAll(app: ReturnType<typeof storeOf>, found: readonly Source[]) {
  const adding = new Adding(app as unknown as Application);
  const before = app.calls;
  await adding.take(found);
  while (adding.busy) await new Promise(setImmediate);
  return { adding, calls: app.calls - before };
}

const source = (file: string, text = file, more: Partial<Source> = {}): Source => ({
  name: file,
  file,
  blob: new Blob([text]),
  ...more,
});

test('a second addition of 10,000 pictures in another order sends only the new ones, with at most one call for 100', async () => {
  const app = storeOf({});
  const old = Array.from({ length: 10_000 }, (_, n) => source(`f/${n}.jpg`));
  const first = await addAll(app, old);
  assert.deepEqual(first.adding.counts, { waiting: 0, reading: 0, stored: 10_000, skipped: 0, failed: 0 });
  const fresh = Array.from({ length: 100 }, (_, n) => source(`f/new ${n}.jpg`));
  const { adding, calls } = await addAll(app, [...fresh, ...old.reverse()]);
  assert.deepEqual(adding.counts, { waiting: 0, reading: 0, stored: 100, skipped: 10_000, failed: 0 });
  assert.ok(calls <= 101, `${calls} calls`);
  assert.deepEqual(app.metadata['f/0.jpg'], { file: 'f/0.jpg' });
});

test('a picture whose ID belongs to another picture gets another ID, also if the inputs are not listed', async () => {
  for (const others of [0, 5000]) {
    const app = storeOf(Object.fromEntries(Array.from({ length: others }, (_, n) => [`other ${n}`, 'x'])));
    const found = [
      source('1.jpg', 'one', { id: 'a' }),
      source('2.jpg', 'two', { id: 'a', metadata: { file: 'mine' } }),
      source('3.jpg', 'one', { id: 'a' }),
      source('4.jpg', 'two', { id: 'ä'.repeat(64) }),
      source('5.jpg', 'one', { id: 'ä'.repeat(64) }),
    ];
    const first = await addAll(app, found);
    assert.deepEqual([first.adding.counts.stored, first.adding.counts.skipped, first.adding.otherIds], [4, 1, 2]);
    const ids = Object.keys(app.metadata);
    const two = createHash('sha256').update('two').digest('hex').slice(0, 8);
    const one = createHash('sha256').update('one').digest('hex').slice(0, 8);
    assert.deepEqual(ids.sort(), ['a', `a~${two}`, `${'ä'.repeat(59)}~${one}`, 'ä'.repeat(64)].sort());
    assert.deepEqual(app.metadata[`a~${two}`], { file: 'mine' });
    const second = await addAll(app, found.reverse());
    assert.deepEqual([second.adding.counts.stored, second.adding.counts.skipped], [0, 5]);
  }
});

test('files that are left out are counted by reason, and unreadable ones fail', async () => {
  const { adding } = await addAll(storeOf({}), [
    { name: 'a', leftOut: 'hidden' },
    { name: 'b', leftOut: 'hidden' },
    { name: 'c', leftOut: 'unknown' },
    { name: 'd', unread: { why: 'denied' } },
    source('e'),
  ]);
  assert.deepEqual({ ...adding.leftOut }, { hidden: 2, unknown: 1 });
  assert.deepEqual([adding.counts.failed, adding.counts.stored], [1, 1]);
});

test('an addition continues by itself after the host did not answer, and shows the reason meanwhile', async (t) => {
  const app = applicationOf();
  const { write } = app;
  const failure = new Failure(0);
  let calls = 0;
  app.write = v2(async () => {
    calls++;
    throw failure;
  });
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const work = new Adding(app as unknown as Application);
  await work.take([{ name: 'new.jpg', blob: new Blob(['a picture']) } as Source]);
  const settle = async (isSettled: () => boolean) => {
    while (!isSettled()) await new Promise(setImmediate);
  };
  await settle(() => work.failure === failure && !work.busy);
  assert.deepEqual([calls, work.counts.waiting, work.paused], [1, 1, false]);
  t.mock.timers.tick(1000);
  await settle(() => calls === 2 && !work.busy);
  t.mock.timers.tick(1999);
  assert.equal(work.busy, false, 'the second wait is longer');
  app.write = write;
  t.mock.timers.tick(1);
  await settle(() => work.done === 1);
  assert.deepEqual([work.counts.stored, work.failure], [1, undefined]);
});

test('the browser asks before the page is left while pictures wait', async () => {
  const listeners: ((event: { preventDefault(): void }) => void)[] = [];
  const add = (_: string, listener: (typeof listeners)[number]) => listeners.push(listener);
  Object.defineProperty(globalThis, 'addEventListener', { configurable: true, value: add });
  const asks = () => {
    let isPrevented = false;
    for (const listener of listeners) listener({ preventDefault: () => (isPrevented = true) });
    return isPrevented;
  };
  const app = applicationOf();
  const work = adding(app as unknown as Application);
  assert.ok(!asks(), 'nothing was added');
  work.pause();
  const taken = work.take([{ name: 'new.jpg', blob: new Blob(['a picture']) } as Source]);
  assert.ok(asks(), 'sources are being opened');
  await taken;
  assert.ok(asks(), 'a picture waits');
  work.resume();
  while (!work.done) await new Promise(setImmediate);
  await new Promise(setImmediate);
  assert.ok(!asks(), 'all pictures were added');
});
