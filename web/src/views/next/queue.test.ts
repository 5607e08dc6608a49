import assert from 'node:assert/strict';
import { test } from 'node:test';
import { v2 } from '../../api/client';
import type { Application } from '../../host/application.svelte';
import { Queue } from './queue';

type Patch = { inputs: [{ id: string; data: { concepts: { id: string; value?: boolean }[] } }]; action: string };

/** Returns an application with `total` pictures in the queue of its model, which stores their labels. */
function applicationOf(total: number) {
  const storedLabels = new Map<string, Record<string, boolean>>();
  const app = {
    refuses: false,
    storedLabels,
    isCopyReady: true, // whether the host knows the earlier labels
    waitForCopy: async () => {
      app.isCopyReady = true;
    },
    v2: v2(async (path): Promise<Response> => {
      const size = Number(new URLSearchParams(path.split('?')[1]).get('per_page'));
      const all = Array.from({ length: total }, (_, n) => `p${n}`);
      const left = all.filter((id) => !app.isCopyReady || !storedLabels.has(id));
      const inputs = left.slice(0, size).map((id) => ({ id, useful: { score: 1, why: 'new' }, predicted: [] }));
      return Response.json({ status: { code: 10000 }, total: left.length, inputs });
    }),
    write: v2(async (_, init): Promise<Response> => {
      if (app.refuses) throw new Error('full');
      const body: Patch = JSON.parse(String(init?.body));
      const [{ id, data }] = body.inputs;
      const words = { ...storedLabels.get(id) };
      for (const c of data.concepts) {
        if (body.action === 'remove') delete words[c.id];
        else words[c.id] = c.value ?? true;
      }
      if (Object.keys(words).length) storedLabels.set(id, words);
      else storedLabels.delete(id);
      return Response.json({ status: { code: 10000 } });
    }),
  };
  return app;
}
const queueOf = (app: ReturnType<typeof applicationOf>) => new Queue(app as unknown as Application, 'ripeness');
const shownId = (queue: Queue): string | undefined => queue.now?.id;

test('200 keys label 200 pictures, and each label is stored before the next picture is shown', async () => {
  const app = applicationOf(200);
  const queue = queueOf(app);
  await queue.more();
  assert.equal(queue.state.total, 200);
  for (let n = 0; n < 200; n++) {
    const firstId = shownId(queue) as string;
    const storing = queue.label({ ripe: n % 2 === 0 });
    assert.equal(shownId(queue), firstId, 'the next was shown before the word was stored');
    assert.equal(await queue.label({ ripe: false }), false, 'a key that comes meanwhile says nothing');
    assert.ok(await storing);
    assert.deepEqual(app.storedLabels.get(firstId), { ripe: n % 2 === 0 });
    await queue.more();
  }
  assert.equal(shownId(queue), undefined);
  assert.equal(queue.labelledCount, 200);
});

test('a label that could not be stored does not count, and its picture stays', async () => {
  const app = applicationOf(3);
  const queue = queueOf(app);
  await queue.more();
  app.refuses = true;
  assert.equal(await queue.label({ ripe: true }), false);
  assert.equal(shownId(queue), 'p0');
  assert.equal(queue.labelledCount, 0);
  assert.equal((queue.state.failure as Error).message, 'full');
});

test('the last label is undone, even if the person has moved on', async () => {
  const app = applicationOf(60);
  const queue = queueOf(app);
  await queue.more();
  await queue.label({ ripe: true, unripe: false });
  await queue.label({ unripe: true }, true);
  assert.equal(shownId(queue), 'p1', 'it stays');
  await queue.label({ unripe: null, scab: true });
  for (let n = 0; n < 30; n++) queue.go(1);
  assert.ok(await queue.undo());
  assert.equal(shownId(queue), 'p1');
  assert.deepEqual([...app.storedLabels], [['p0', { ripe: true, unripe: false }]]);
  assert.ok(await queue.undo());
  assert.equal(app.storedLabels.size, 0);
  assert.equal(await queue.undo(), false);
});

test('skipped pictures do not hide the pictures after them', async () => {
  const queue = queueOf(applicationOf(60));
  await queue.more();
  for (let n = 0; n < 60; n++) {
    assert.equal(shownId(queue), `p${n}`);
    queue.go(1);
    await queue.more();
  }
  assert.equal(shownId(queue), undefined);
  queue.go(-1);
  assert.equal(shownId(queue), 'p59');
});

test('pictures that were labelled before the tab was killed are not shown again', async () => {
  const app = applicationOf(10);
  const before = queueOf(app);
  await before.more();
  for (let n = 0; n < 3; n++) await before.label({ ripe: true });
  app.isCopyReady = false; // a new page: its replica is not open yet, and the origin does not know the labels
  const after = queueOf(app);
  await after.more();
  assert.equal(shownId(after), 'p3');
  assert.equal(after.state.total, 7);
});
