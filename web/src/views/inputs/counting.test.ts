import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Failure } from '../../api/console';
import type { Application } from '../../host/application.svelte';
import { Counting } from './counting.svelte';

test('the numbers are read often while pictures wait, and seldom while no host answers', async (t) => {
  const pauses: number[] = [];
  t.mock.method(globalThis, 'setTimeout', ((_: unknown, pause: number) => void pauses.push(pause)) as never);
  Object.assign(globalThis, { document: { hidden: false } });
  t.after(() => Reflect.deleteProperty(globalThis, 'document'));
  let counts: { processed: number; to_process: number; errors: number } | undefined = {
    processed: 1,
    to_process: 2,
    errors: 0,
  };
  const GET = async () => {
    if (!counts) throw new Failure(0);
    return { counts };
  };
  const counting = new Counting({ v2: { GET } } as unknown as Application, () => {});
  await counting.read();
  counts = undefined;
  await counting.read();
  counts = { processed: 3, to_process: 0, errors: 0 };
  await counting.read();
  counting.close();
  assert.deepEqual(pauses, [1000, 30_000, 5000]);
});
