import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Fetch } from '../api/client';
import { listConflicts, Outbox, type Status } from './outbox.svelte';

const at = (cursor: number, more: Partial<Status> = {}): Status => ({
  app_id: 'a',
  origin: '',
  phase: 'current',
  cursor,
  head: cursor,
  queued: 0,
  sent: 0,
  conflicts: 0,
  ...more,
});

/** A host that returns its status on request and, like a replica, reports changes of the status. */
class Place extends Outbox {
  now: Status | undefined = at(1);
  notices = 0;
  ask: Fetch = async () => Response.json({ status: { code: 10000 }, operations: [] });
  protected reads = true;
  protected reached = true;
  readonly offline = false;
  override onprogress = () => {
    this.notices++;
  };

  protected override readStatus = async () => this.now;

  async reportStatus(status: Status): Promise<void> {
    this.setStatus(status);
    await this.refresh();
  }
}

test('each change of the log is announced once, whether it was reported or read first', async () => {
  const place = new Place();
  await place.refresh();
  assert.equal(place.notices, 1, 'what was read before it said anything may be older');
  // The log grows after a report of another change, before the status is read.
  place.now = at(2);
  await place.reportStatus(at(1, { phase: 'connecting' }));
  assert.equal(place.notices, 2, 'read before it was said');
  await place.reportStatus(at(2));
  assert.equal(place.notices, 2, 'and said then');
  place.now = at(3);
  await place.reportStatus(at(3));
  assert.equal(place.notices, 3, 'said before it was read');
  place.now = at(3, { queued: 1 });
  await place.refresh();
  assert.equal(place.notices, 4, 'written');
  place.now = at(3, { sent: 1 });
  await place.refresh();
  assert.equal(place.notices, 4, 'sent is not written');
});

test('a report that comes while pending operations are read is announced', async () => {
  const place = new Place();
  await place.refresh();
  let answer = (_: Response) => {};
  place.ask = () => new Promise((resolve) => (answer = resolve));
  place.now = at(1, { queued: 1 });
  const round = place.refresh();
  await new Promise(setImmediate);
  place.now = at(2);
  const report = place.reportStatus(at(2));
  answer(Response.json({ status: { code: 10000 }, operations: [] }));
  await Promise.all([round, report]);
  assert.equal(place.status?.cursor, 2);
  assert.ok(place.notices > 1);
});

test('a report that comes while pending operations are read is newer than the status before them', async () => {
  const place = new Place();
  await place.refresh();
  let answer = (_: Response) => {};
  place.ask = () => new Promise((resolve) => (answer = resolve));
  place.now = at(1, { phase: 'paused', queued: 1 });
  const round = place.refresh();
  await new Promise(setImmediate);
  place.now = undefined; // the replica is closed
  const report = place.reportStatus(at(1, { phase: 'purged', queued: 1 }));
  answer(Response.json({ status: { code: 10000 }, operations: [] }));
  await Promise.all([round, report]);
  assert.equal(place.status?.phase, 'purged');
});

test('the end of a replica is announced, even if its status can no longer be read', async () => {
  const place = new Place();
  await place.refresh();
  place.now = undefined;
  await place.reportStatus(at(1, { phase: 'purged' }));
  assert.equal(place.notices, 2);
  const other = new Place();
  await other.reportStatus(at(1, { phase: 'purged' }));
  assert.equal(other.notices, 1, 'and of one that was taken before it was first asked');
});

test('the host answers for an input whose creation is pending, and not for others', async () => {
  const place = new Place();
  const operations = [
    { kind: 'input_create', input_id: 'new', state: 'sent' },
    { kind: 'label_put', input_id: 'old', state: 'queued' },
  ];
  place.ask = async () => Response.json({ status: { code: 10000 }, operations });
  place.now = at(1, { queued: 1, sent: 1 });
  await place.refresh();
  const paths = ['/v2/inputs/new', '/v2/inputs/new/duplicates?per_page=1', '/v2/inputs/new?show=taken'];
  const others = ['/v2/inputs/old', '/v2/inputs/newer', '/v2/inputs', '/v2/inputs?page=1', '/v2/models/new'];
  for (const path of paths) assert.ok(place.creates(path), path);
  for (const path of others) assert.ok(!place.creates(path), path);
});

test('a contradiction marks the thing whose value it is', async () => {
  const place = new Place();
  place.now = at(1, { conflicts: 5 });
  const contradiction = (field: string, subject: object) => ({
    verdict: 'contradiction',
    field,
    values: [],
    ...subject,
  });
  const conflicts = [
    { verdict: 'gone', input_id: 'a' },
    contradiction('label', { input_id: 'b', concept_id: 'town' }),
    contradiction('metadata', { input_id: 'c' }),
    contradiction('name', { concept_id: 'd' }),
    contradiction('deletion', { input_id: 'e', written: 'label', concept_id: 'town' }),
  ];
  place.ask = async () => Response.json({ status: { code: 10000 }, dropped: 0, conflicts });
  await place.refresh();
  const { inputs, concepts } = place.marks;
  assert.deepEqual([...inputs.keys()], ['a', 'b', 'c']);
  assert.deepEqual([...concepts.keys()], ['d']);
  assert.deepEqual(
    place.conflicts.map((c) => c.verdict),
    ['gone'],
  );
});

test('all conflicts are listed, not only the first thousand', async () => {
  const place = new Place();
  const rows = [
    ...Array.from({ length: 700 }, (_, i) => ({ id: `2-${i}`, verdict: 'gone', input_id: `${i}` })),
    ...Array.from({ length: 900 }, (_, i) => ({ id: `c-${i}`, verdict: 'contradiction', field: 'label', values: [] })),
  ];
  place.ask = async (path) => {
    const { searchParams } = new URL(path, 'http://host');
    const [page = 0, size = 0] = ['page', 'per_page'].map((name) => Number(searchParams.get(name)));
    const conflicts = rows.slice((page - 1) * size, page * size);
    return Response.json({ status: { code: 10000 }, dropped: 3, conflicts });
  };
  place.now = at(1, { conflicts: rows.length });
  await place.refresh();
  assert.deepEqual([place.conflicts.length, place.contradictions.length, place.dropped], [700, 900, 3]);
  const { conflicts, contradictions, dropped } = await listConflicts(place.v2);
  assert.deepEqual([conflicts.length, contradictions.length, dropped], [700, 900, 3]);
});

test('nothing counts as confirmed before the lists have all operations that the status counts', async () => {
  const place = new Place();
  let reads = 0;
  place.ask = async () => {
    reads++;
    return Response.json({
      status: { code: 10000 },
      operations: [{ kind: 'input_labels', input_id: 'a', state: 'queued' }],
    });
  };
  place.now = at(1, { queued: 1 });
  const report = place.reportStatus(place.now);
  assert.ok(!place.areMarksCurrent, 'reported, not listed');
  await report;
  assert.ok(place.areMarksCurrent, 'listed');
  await place.refresh();
  assert.equal(reads, 1, 'an equal status needs no other lists');
  place.now = at(2, { queued: 1 }); // one operation was confirmed, and there is another one
  const next = place.reportStatus(place.now);
  assert.ok(!place.areMarksCurrent, 'the same number of other operations');
  await next;
  assert.deepEqual([reads, place.areMarksCurrent], [2, true]);
});

test('nothing counts as confirmed until the lists were read after the data', async () => {
  const place = new Place();
  await place.refresh();
  assert.ok(place.areMarksCurrent);
  place.now = at(1, { queued: 1 }); // by another page
  const notices = place.notices;
  place.noteAnswer();
  assert.ok(!place.areMarksCurrent);
  await new Promise(setImmediate);
  assert.deepEqual([place.areMarksCurrent, place.notices], [true, notices], 'a read causes no other read');
  await place.refresh();
  assert.equal(place.notices, notices + 1, 'the next refresh reports the progress');
  place.now = undefined;
  place.noteAnswer();
  await place.refresh();
  assert.ok(place.areMarksCurrent, 'a closed host has no data');
});

/** A host with many pending operations, of which each complete list takes 100 ms. Time passes only in its answers and by `pass`. */
async function hostOfMany(t: TestContext) {
  const clock = { now: 1000, newest: 0 }; // ms; newest: the time that each read of the newest operations takes
  t.mock.timers.enable({ apis: ['setTimeout'] });
  t.mock.method(performance, 'now', () => clock.now);
  const pass = (ms: number) => {
    clock.now += ms;
    t.mock.timers.tick(ms);
  };
  const place = new Place();
  const reads: string[] = [];
  place.ask = async (path) => {
    const query = new URL(path, 'http://host').searchParams;
    const [page, size] = [Number(query.get('page')), Number(query.get('per_page'))];
    reads.push(`${page} of ${size}`);
    await undefined;
    pass(size === 1000 ? 50 : clock.newest);
    const all = place.now?.queued ?? 0;
    const operations = Array.from({ length: Math.max(0, Math.min(size, all - (page - 1) * size)) }, (_, i) => {
      const seq = (page - 1) * size + i + 1;
      return { kind: 'input_create', input_id: `i${seq}`, writer: 'w', seq, state: 'queued' };
    });
    return Response.json({ status: { code: 10000 }, operations });
  };
  place.now = at(1, { queued: 1001 });
  await place.refresh();
  assert.deepEqual(reads.splice(0), ['1 of 1000', '2 of 1000']);
  assert.ok(place.areMarksCurrent);
  place.now = at(1, { queued: 1002 });
  return { clock, pass, place, reads };
}

const complete = ['1 of 1000', '2 of 1000'];
const newest = ['10 of 100', '11 of 100'];

test('after a read of the newest operations alone, a later one reads all, although the status is the same', async (t) => {
  const { pass, place, reads } = await hostOfMany(t);
  await place.refresh();
  assert.deepEqual([reads.splice(0), place.pending.length, place.areMarksCurrent], [newest, 1002, false]);
  pass(399);
  await place.refresh();
  assert.deepEqual(
    [reads.splice(0), place.areMarksCurrent],
    [newest, false],
    'the status is the same, it is too early',
  );
  pass(1); // the timer begins a refresh, and this one waits for it
  await place.refresh();
  assert.deepEqual([reads.splice(0), place.areMarksCurrent], [complete, true]);
  pass(10_000);
  await place.refresh();
  assert.deepEqual(reads, [], 'all are listed');
});

test('if the time of the complete read comes while the newest operations are read, all are read then', async (t) => {
  const { clock, place, reads } = await hostOfMany(t);
  clock.newest = 250;
  await place.refresh();
  assert.deepEqual([reads, place.areMarksCurrent], [[...newest, ...complete], true]);
});
