import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { afterEach, test } from 'node:test';
import type { Application } from '../../host/application.svelte';
import '../../api/blobs.testkit';
import { v2 } from '../../api/client';
import { Failure } from '../../api/console';
import { Adding } from './adding.svelte';
import { Queue, UnstoredFile } from './queue';
import { storage } from './queue.testkit';
import type { Source } from './sources';

const answer = (body: object) => Response.json({ status: { code: 10000 }, ...body });
const hashOf = (base64: string) => createHash('sha256').update(Buffer.from(base64, 'base64')).digest('hex');

/** A host with the inputs that were added. It refuses an ID that exists. */
class Host {
  stored = new Map<string, string>(); // SHA-256 of the picture by ID
  deleted = new Set<string>();
  writes = 0;
  isReached = true;
  limit = Number.POSITIVE_INFINITY; // number of inputs after which the host does not answer any more

  async write(init?: { body?: unknown }): Promise<Response> {
    if (!this.isReached) throw new Failure(0);
    const { inputs }: { inputs: { id: string; data: { image: { base64: string } } }[] } = JSON.parse(
      String(init?.body),
    );
    const items = inputs.map(({ id, data }) => {
      this.writes++;
      const exists = this.stored.has(id);
      if (!exists) this.stored.set(id, hashOf(data.image.base64));
      return { id, status: { code: exists ? 30100 : 30000, description: '' } };
    });
    if (this.stored.size >= this.limit) return new Promise(() => {}); // the answer is lost
    return answer({ inputs: items });
  }

  async read(address: string): Promise<Response> {
    if (!this.isReached) throw new Failure(0);
    const { pathname } = new URL(address, 'http://here');
    const id = decodeURIComponent(pathname.split('/')[3] ?? '');
    if (pathname.endsWith('/duplicates')) return answer({ duplicates: [] });
    if (pathname.endsWith('/history'))
      return this.stored.has(id) || this.deleted.has(id)
        ? answer({ operations: [{}] })
        : Response.json({ status: { code: 30102 } }, { status: 404 });
    if (pathname === `/v2/inputs/${id}` && id !== 'status' && !this.stored.has(id))
      return Response.json({ status: { code: 30102 } }, { status: 404 });
    if (pathname === '/v2/inputs/status') return answer({ counts: { processed: 99_999, to_process: 0, errors: 0 } });
    return answer({ input: { id, data: { image: { sha256: this.stored.get(id) } }, status: { code: 30000 } } });
  }
}

let apps = 0;
let tabs: AbortController[] = [];
afterEach(() => {
  for (const tab of tabs) tab.abort();
  tabs = [];
});
const newApp = () => `app${++apps}`;

/** A tab of an application. `end` closes it as a crash does: nothing that it has begun continues. */
function openTab(id: string, host: Host, outbox = false) {
  const end = new AbortController();
  tabs.push(end);
  const live = <T>(call: () => Promise<T>): Promise<T> => (end.signal.aborted ? new Promise(() => {}) : call());
  const app = {
    id,
    by: 'origin',
    ended: end.signal,
    refused: [] as { kind: string; input_id: string }[], // conflicts of inputs whose ID the origin had already
    get outbox() {
      const dismiss = async (one: object) => void app.refused.splice(app.refused.indexOf(one as never), 1);
      return outbox ? { conflicts: app.refused, dismiss } : undefined;
    },
    pending: new Set<string>(), // IDs of inputs that the origin does not have yet
    markOf: (_: string, input: string) => {
      if (app.refused.some(({ input_id }) => input_id === input)) return 'conflict';
      return app.pending.has(input) ? 'queued' : 'confirmed';
    },
    write: v2((_, init) => live(() => host.write(init))),
    v2: v2((address) => live(() => host.read(address))),
  };
  const work = new Adding(app as unknown as Application);
  return { app, work, end: () => end.abort() };
}

const files = (...names: string[]): Source[] =>
  names.map((name) => ({ name, file: name, blob: new Blob([`picture ${name}`]) }));
const many = (count: number, first = 0) => files(...Array.from({ length: count }, (_, n) => `${first + n}.jpg`));

/** Waits until a condition is true. Each turn runs the timers, which the tests mock. */
async function until(t: { mock: { timers: { tick(ms: number): void } } }, isTrue: () => boolean | Promise<boolean>) {
  for (let n = 0; !(await isTrue()); n++) {
    assert.ok(n < 20_000, 'the condition never becomes true');
    await new Promise(setImmediate);
    if (n % 20 === 19) t.mock.timers.tick(1000);
  }
}
const mockTimers = (t: { mock: { timers: { enable(options: { apis: ['setTimeout'] }): void } } }) =>
  t.mock.timers.enable({ apis: ['setTimeout'] });

/** Reads the queue of an application. */
async function inQueue<T>(id: string, read: (queue: Queue) => Promise<T>): Promise<T> {
  const queue = await Queue.open(id);
  assert.ok(queue);
  return read(queue).finally(() => queue.close());
}

/** Returns the number of files that the browser keeps for an application. */
const keptFiles = (id: string): Promise<number> =>
  inQueue(id, async (queue) => {
    const keys = [...(await queue.list()).keys()];
    return (await Promise.all(keys.map((key) => queue.file(key)))).filter(Boolean).length;
  });

test('an addition continues after a crash at any moment, and adds each picture once', async (t) => {
  mockTimers(t);
  const [id, host] = [newApp(), new Host()];
  let tab = openTab(id, host);
  let taken: Promise<void> | undefined = tab.work.take(many(60));
  for (let crash = 1; crash <= 20; crash++) {
    host.limit = 3 * crash; // the answer of the last call is lost
    await taken;
    taken = undefined;
    await until(t, () => host.stored.size >= host.limit);
    tab.end();
    tab = openTab(id, host);
    await tab.work.begin();
    assert.equal(tab.work.entries.length, 60);
  }
  host.limit = Number.POSITIVE_INFINITY;
  await until(t, () => !tab.work.isUnfinished && tab.work.done === 60);
  assert.deepEqual([tab.work.counts.stored, tab.work.counts.skipped], [60, 0]);
  assert.equal(host.stored.size, 60);
  assert.equal(new Set(host.stored.values()).size, 60);
  await until(t, async () => (await keptFiles(id)) === 0);
});

test('a picture is listed only once it is stored', async (t) => {
  mockTimers(t);
  const [id, host] = [newApp(), new Host()];
  host.isReached = false;
  const { work, end } = openTab(id, host);
  await work.take(many(300));
  assert.equal(work.entries.length, 300);
  assert.equal(await keptFiles(id), 300);
  assert.equal(work.needsPage, false);
  end();
});

test('one tab adds the pictures, and the other shows them and takes over', async (t) => {
  mockTimers(t);
  const [id, host] = [newApp(), new Host()];
  host.limit = 5;
  const first = openTab(id, host);
  await first.work.take(many(20));
  const second = openTab(id, host);
  await second.work.begin();
  assert.ok(second.work.isElsewhere);
  assert.equal(second.work.entries.length, 20);
  await second.work.take(many(10, 20));
  await until(t, () => first.work.entries.length === 30);
  const writes = host.writes;
  await until(t, () => host.stored.size >= 5);
  assert.equal(second.work.counts.reading, 0, 'the second tab sends nothing');
  assert.ok(host.writes >= writes);
  host.limit = Number.POSITIVE_INFINITY;
  first.end();
  await until(t, () => second.work.done === 30);
  assert.deepEqual([second.work.isElsewhere, host.stored.size, second.work.counts.failed], [false, 30, 0]);
});

test('a tab pauses and cancels the addition of another tab, and clears its list', async (t) => {
  mockTimers(t);
  const [id, host] = [newApp(), new Host()];
  host.isReached = false;
  const first = openTab(id, host);
  await first.work.take([...many(20), { name: 'no.jpg', unread: 'empty' }]);
  const second = openTab(id, host);
  await second.work.begin();
  second.work.pause();
  await until(t, () => first.work.paused);
  second.work.cancel();
  await until(t, () => first.work.entries.length === 1);
  assert.deepEqual([second.work.counts.failed, second.work.entries.length], [1, 1]);
  second.work.clear();
  await until(t, () => first.work.entries.length === 0);
  assert.equal(await keptFiles(id), 0);
  first.end();
  second.end();
});

test('a pause lasts after a reload', async (t) => {
  mockTimers(t);
  const [id, host] = [newApp(), new Host()];
  const first = openTab(id, host);
  first.work.pause();
  await first.work.take(many(3));
  first.work.pause();
  await until(t, async () => (await inQueue(id, (queue) => queue.settings()))?.isPaused === true);
  first.end();
  const second = openTab(id, host);
  await second.work.begin();
  assert.deepEqual([second.work.paused, second.work.counts.waiting], [true, 3]);
  second.work.resume();
  await until(t, () => second.work.done === 3);
});

test('above 90 % of the quota no file is stored, and the page is needed until all are added', async (t) => {
  mockTimers(t);
  const [id, host] = [newApp(), new Host()];
  host.isReached = false;
  const { work } = openTab(id, host);
  storage.usage = 0.89 * storage.quota;
  await work.take(files('small.jpg'));
  assert.deepEqual([work.isFull, work.needsPage], [false, false]);
  storage.usage = 0.9 * storage.quota;
  await work.take(files('large.jpg'));
  storage.usage = 0;
  assert.deepEqual([work.isFull, work.needsPage, await keptFiles(id)], [true, true, 1]);
  host.isReached = true;
  await until(t, () => work.done === 2);
  assert.deepEqual([work.needsPage, host.stored.size], [false, 2]);
});

test('a tab adds the pictures for which there is no room, while another tab works through the queue', async (t) => {
  mockTimers(t);
  const [id, host] = [newApp(), new Host()];
  host.isReached = false;
  const first = openTab(id, host);
  await first.work.take(files('a.jpg'));
  const second = openTab(id, host);
  storage.usage = storage.quota;
  await second.work.take(files('b.jpg'));
  storage.usage = 0;
  assert.ok(second.work.isElsewhere);
  const isWaiting = () => second.work.entries.some(({ key, is }) => key === undefined && is === 'waiting');
  await until(t, () => second.work.failure !== undefined && isWaiting());
  first.work.pause(); // the second tab reads the queue again
  await until(t, () => second.work.paused);
  first.work.resume();
  host.isReached = true;
  await until(t, () => host.stored.size === 2);
});

test('files of a zip for which there is no room wait in turn, and the addition ends after they were cancelled', async (t) => {
  mockTimers(t);
  const host = new Host();
  host.isReached = false;
  const { work } = openTab(newApp(), host);
  storage.usage = storage.quota;
  const blob = Object.defineProperty(new Blob(['x']), 'size', { value: 40_000_000 });
  const zip = (name: string): Source[] =>
    Array.from({ length: 3 }, (_, n) => ({ name: `${name}${n}`, blob, isInMemory: true }));
  const taken = Promise.all([work.take(zip('a')), work.take(zip('b'))]);
  await until(t, () => work.entries.length >= 3 && work.failure !== undefined);
  storage.usage = 0;
  let isTaken = false;
  void taken.then(() => (isTaken = true));
  await until(t, () => {
    if (!work.counts.reading) work.cancel();
    return isTaken;
  });
  assert.equal(work.gathering, 0);
});

test('only an unfinished addition counts as data of a person', async (t) => {
  mockTimers(t);
  const [id, host] = [newApp(), new Host()];
  host.isReached = false;
  const { work } = openTab(id, host);
  await work.take(files('a.jpg'));
  assert.ok((await Queue.unfinished()).includes(id));
  host.isReached = true;
  await until(t, () => work.done === 1);
  await until(t, async () => !(await Queue.unfinished()).includes(id));
});

test('a file that cannot be read fails alone, with the reason', async (t) => {
  mockTimers(t);
  const [id, host] = [newApp(), new Host()];
  const { work } = openTab(id, host);
  const gone = new Blob(['gone']);
  const { add } = Queue.prototype;
  t.mock.method(Queue.prototype, 'add', async function (this: Queue, added: Parameters<Queue['add']>[0]) {
    if (!added.some(({ file }) => file?.size === gone.size)) return add.call(this, added);
    throw new UnstoredFile('aborted', { cause: new DOMException('the file is gone', 'NotReadableError') });
  });
  await work.take([...files('a.jpg', 'b.jpg'), { name: 'gone.jpg', file: 'gone.jpg', blob: gone }]);
  await until(t, () => work.done === 3);
  assert.deepEqual([work.counts.stored, work.counts.failed], [2, 1]);
  assert.equal(work.entries.find(({ is }) => is === 'failed')?.failure?.description, 'the file is gone');
});

test('a file is kept until the origin has the picture, which is sent again if the host loses it', async (t) => {
  mockTimers(t);
  const [id, host] = [newApp(), new Host()];
  const tab = openTab(id, host, true);
  for (const name of ['a.jpg', 'b.jpg', 'c.jpg']) tab.app.pending.add(name);
  await tab.work.take(files('a.jpg', 'b.jpg', 'c.jpg'));
  await until(t, () => tab.work.counts.stored === 3);
  t.mock.timers.tick(5000);
  assert.equal(await keptFiles(id), 3, 'the origin has no picture yet');
  tab.app.pending.delete('a.jpg');
  await until(t, async () => (await keptFiles(id)) === 2);
  host.stored.delete('b.jpg'); // the replica was lost
  host.stored.delete('c.jpg');
  host.deleted.add('c.jpg'); // a person has deleted it
  tab.app.pending.clear();
  await until(t, async () => (await keptFiles(id)) === 0);
  assert.deepEqual([...host.stored.keys()], ['a.jpg', 'b.jpg']);
});

test('a cleared list keeps the files that the origin does not have yet, also after a reload', async (t) => {
  mockTimers(t);
  const [id, host] = [newApp(), new Host()];
  const first = openTab(id, host, true);
  first.app.pending.add('a.jpg');
  await first.work.take(files('a.jpg'));
  await until(t, () => first.work.counts.stored === 1);
  first.work.clear();
  assert.deepEqual([first.work.entries.length, first.work.counts.stored], [0, 0]);
  await until(t, async () => (await inQueue(id, (queue) => queue.list())).get(1)?.isCleared === true);
  first.end();
  host.stored.clear(); // the host loses the picture
  const second = openTab(id, host, true);
  second.app.pending.add('a.jpg');
  await second.work.begin();
  assert.equal(second.work.entries.length, 0);
  second.app.pending.clear();
  await until(t, () => host.stored.has('a.jpg'));
  await until(t, async () => (await keptFiles(id)) === 0);
});

test('a picture whose ID the origin had already is added with another ID, unless it is the same picture', async (t) => {
  mockTimers(t);
  const [id, host] = [newApp(), new Host()];
  const tab = openTab(id, host, true);
  for (const name of ['a.jpg', 'b.jpg']) tab.app.pending.add(name);
  await tab.work.take(files('a.jpg', 'b.jpg'));
  await until(t, () => tab.work.counts.stored === 2);
  host.stored.set('b.jpg', 'the hash of a picture that another device added');
  tab.app.refused.push(...['a.jpg', 'b.jpg'].map((input_id) => ({ kind: 'input_create', input_id })));
  tab.app.pending.clear();
  await until(t, async () => (await keptFiles(id)) === 0);
  const other = `b.jpg~${createHash('sha256').update('picture b.jpg').digest('hex').slice(0, 8)}`;
  assert.deepEqual([[...host.stored.keys()], tab.app.refused], [['a.jpg', 'b.jpg', other], []]);
});

test('an addition waits while the host has no room', async (t) => {
  mockTimers(t);
  const [id, host] = [newApp(), new Host()];
  const { work } = openTab(id, host);
  const { write } = host;
  const full = { code: 39998, description: 'Writes disabled' };
  host.write = async (init) => {
    const { inputs } = JSON.parse(String(init?.body));
    return answer({ inputs: inputs.map(({ id }: { id: string }) => ({ id, status: full })) });
  };
  await work.take(many(2));
  await until(t, () => work.failure !== undefined);
  assert.deepEqual([work.counts.waiting + work.counts.reading, work.counts.failed], [2, 0]);
  host.write = write;
  await until(t, () => work.done === 2);
  assert.deepEqual([work.counts.stored, work.failure], [2, undefined]);
});

test('without a stored queue, the pictures are added and the page is needed meanwhile', async (t) => {
  mockTimers(t);
  const host = new Host();
  host.isReached = false;
  t.mock.method(Queue, 'open', async () => undefined);
  const { work } = openTab(newApp(), host);
  await work.take(many(3));
  assert.deepEqual([work.stores, work.needsPage, work.isFull], [false, true, false]);
  host.isReached = true;
  await until(t, () => work.done === 3);
  assert.deepEqual([work.needsPage, host.stored.size], [false, 3]);
});

test('the queue of an application is found and deleted', async () => {
  const id = newApp();
  const queue = await Queue.open(id);
  assert.ok((await Queue.apps()).includes(id));
  await Queue.remove(id); // although a tab has it open
  assert.ok(!(await Queue.apps()).includes(id));
  await assert.rejects(async () => queue?.list());
  queue?.close();
});
