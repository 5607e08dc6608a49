import assert from 'node:assert/strict';
import { test } from 'node:test';
import { v2 } from '../../api/client';
import type { Application } from '../../host/application.svelte';
import { List } from './list';

/** Returns an application with `total` pictures, which adds every request to `requests`. */
function applicationOf(total: number, requests: string[]): Application {
  const input = (n: number) => ({ id: `p${n}`, created_at: new Date(1e12 + n * 1000).toISOString() });
  const all = Array.from({ length: total }, (_, n) => input(n));
  const answer = (path: string, body?: { pagination: { page: number; per_page: number } }) => {
    if (path === '/v2/inputs/status') return { counts: { processed: total - 1, to_process: 1, errors: 0 } };
    if (path === '/v2/searches/summary') return { summary: { matching: total } };
    const one = path.match(/^\/v2\/inputs\/p(\d+)$/);
    if (one) return { input: input(Number(one[1])) };
    const params = new URLSearchParams(path.split('?')[1]);
    const { page, per_page: size } = body?.pagination ?? {
      page: Number(params.get('page')),
      per_page: Number(params.get('per_page')),
    };
    const inputs = all.slice((page - 1) * size, page * size);
    return { inputs, hits: inputs.map((i) => ({ score: 1, input: i })) };
  };
  const host = v2(async (path, init) => {
    requests.push(`${init?.method} ${path}`);
    const body = init?.body && JSON.parse(String(init.body));
    return Response.json({ status: { code: 10000 }, ...answer(path, body) });
  });
  return { v2: host } as Application;
}

test('the newest input is first, and each position has its neighbours', async () => {
  const requests: string[] = [];
  const list = new List(applicationOf(100_000, requests), []);
  assert.deepEqual(await list.positionOf('p99999', 0), {
    id: 'p99999',
    at: 0,
    total: 100_000,
    before: undefined,
    after: { id: 'p99998', created: new Date(1e12 + 99998 * 1000).toISOString() },
  });
  const middle = await list.positionOf('p42000', undefined);
  assert.equal(middle?.at, 57_999);
  assert.deepEqual([middle?.before?.id, middle?.after?.id], ['p42001', 'p41999']);
  assert.equal((await list.positionOf('p0', 99_998))?.at, 99_999);
  assert.ok(requests.length < 20, `${requests.length} calls`);
});

test('inputs of a ranking keep the order of the hits', async () => {
  const list = new List(applicationOf(250, []), [{ kind: 'similar', id: 'p0' }]);
  const position = await list.positionOf('p120', undefined);
  assert.deepEqual([position?.at, position?.before?.id, position?.after?.id], [120, 'p119', 'p121']);
  assert.equal(await list.positionOf('gone', 7), undefined);
});

test('inputs of a filter are listed newest first', async () => {
  const list = new List(applicationOf(3, []), [{ kind: 'metadata', json: { a: 1 } }]);
  assert.deepEqual((await list.positionOf('p1', undefined))?.after?.id, 'p0');
});
