import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Failure } from '../api/console';
import { EdgeStatus } from './edgeStatus.svelte';

test('a page asks an edge that does not answer ever less often, and every two seconds once it answers', async (t) => {
  Object.defineProperty(globalThis, 'document', { configurable: true, value: { visibilityState: 'visible' } });
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let [calls, isReachable] = [0, false];
  const copy = { app_id: 'a', phase: 'current', cursor: 1, head: 1, queued: 0, sent: 0, conflicts: 0 };
  const edge = new EdgeStatus(
    async () => {
      calls++;
      if (!isReachable) throw new Failure(0);
      return Response.json({ status: { code: 10000 }, copy });
    },
    () => {},
  );
  /** Returns the number of polls in some seconds. */
  const polls = async (seconds: number) => {
    const before = calls;
    for (let n = 0; n < seconds; n++) {
      t.mock.timers.tick(1000);
      for (let i = 0; i < 8; i++) await new Promise(setImmediate);
    }
    return calls - before;
  };
  await edge.start();
  assert.equal(await polls(60), 4, 'after 4, 8, 16 and 30 seconds');
  isReachable = true;
  await polls(30);
  assert.equal(edge.status?.phase, 'current');
  assert.equal(await polls(20), 10);
  edge.close();
  assert.equal(await polls(20), 0, 'closed');
});
