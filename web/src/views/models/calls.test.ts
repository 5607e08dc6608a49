import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Fetch, type V2, v2 } from '../../api/client';
import { marksOf } from '../../host/syncMarks';
import { readVersion } from './calls';

/** Returns a host that answers with a version's code and progress, and counts the requests. Without a code the version does not exist. */
function place(code?: number, progress?: number): { v2: V2; requestCount: () => number } {
  let requests = 0;
  const ask: Fetch = async (address) => {
    requests++;
    if (!code)
      return Response.json({ status: { code: 11101, description: 'Resource does not exist' } }, { status: 404 });
    const shown = new URL(address, 'http://x').searchParams.get('show') === 'progress' && { progress };
    return Response.json({ status: { code: 10000 }, model_version: { id: 'v', status: { code }, ...shown } });
  };
  return { v2: v2(ask), requestCount: () => requests };
}

const [queued, trained] = [21103, 21100];
const marked = marksOf([{ model_id: 'm', state: 'queued' }], []);
const none = marksOf([], []);

test('the progress of a training comes from the host that trains', async () => {
  const tests = [
    { name: 'the copy trains', copy: place(queued, 0.5), origin: place(queued), want: ['device', 0.5], asks: 0 },
    { name: 'the origin trains', copy: place(queued), origin: place(queued, 0.25), want: ['origin', 0.25], asks: 1 },
    {
      name: 'the copy has not heard of it',
      copy: place(),
      origin: place(queued, 0.25),
      want: ['origin', 0.25],
      asks: 1,
    },
    { name: 'nobody says', copy: place(queued), origin: place(queued), want: ['device', undefined], asks: 1 },
    { name: 'the origin is gone', copy: place(queued), origin: place(), want: ['device', undefined], asks: 1 },
    { name: 'it is trained', copy: place(trained), origin: place(trained), want: ['device', undefined], asks: 0 },
    {
      name: 'without a network',
      copy: place(queued),
      offline: true,
      origin: place(),
      want: ['device', undefined],
      asks: 0,
    },
    {
      name: 'the origin has not heard of it',
      copy: place(queued),
      marks: marked,
      origin: place(),
      want: ['device', undefined],
      asks: 0,
    },
  ];
  for (const { name, copy, origin, offline = false, marks = none, want, asks: expectedRequests } of tests) {
    const app = { v2: copy.v2, remote: origin.v2, by: 'device' as const, offline, marks };
    const { version, by } = await readVersion(app, 'm', 'v');
    assert.deepEqual([by, version.progress], want, name);
    assert.equal(origin.requestCount(), expectedRequests, name);
  }
});

test('a host that answers by itself is not compared with another', async () => {
  const origin = place(queued, 0.75);
  const app = { v2: origin.v2, remote: origin.v2, by: 'origin' as const, offline: false, marks: none };
  const { version, by } = await readVersion(app, 'm', 'v');
  assert.deepEqual([by, version.progress, origin.requestCount()], ['origin', 0.75, 1]);
  const missing = { ...app, v2: place().v2 };
  await assert.rejects(readVersion(missing, 'm', 'v'), /Resource does not exist/);
});
