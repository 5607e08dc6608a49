import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Fetch, type V2, v2 } from '../../api/client';
import { label } from '../../host/calls';
import { inForce, newest } from './calls';

const ok = { status: { code: 10000, description: 'Ok' } };

/** Returns the calls of a replica with `count` inputs, and the list of its write requests. */
function copyOf(count: number): { calls: V2; written: { line: string; body: unknown }[] } {
  const written: { line: string; body: unknown }[] = [];
  const ask: Fetch = async (path, init = {}) => {
    const { pathname, searchParams } = new URL(path, 'http://here');
    if (init.method !== 'GET') {
      written.push({ line: `${init.method} ${path}`, body: init.body && JSON.parse(init.body as string) });
      return Response.json(ok);
    }
    if (pathname === '/v2/inputs/status') {
      return Response.json({ ...ok, counts: { processed: count - 1, to_process: 1, errors: 0 } });
    }
    if (pathname === '/v2/inputs') {
      const [page, size] = ['page', 'per_page'].map((name) => Number(searchParams.get(name))) as [number, number];
      const ids = Array.from({ length: count }, (_, i) => `${i + 1}`).slice((page - 1) * size, page * size);
      return Response.json({
        ...ok,
        inputs: ids.map((id) => ({ id, data: { image: { url: `http://a/hosted/${id}` } } })),
      });
    }
    return Response.json({ status: { code: 11101, description: 'Resource does not exist' } }, { status: 404 });
  };
  return { calls: v2(ask), written };
}

test('the newest inputs come first, over the border of a page', async () => {
  for (const [count, want] of [
    [1, ['1']],
    [3, ['3', '2', '1']],
    [4, ['4', '3', '2']],
    [7, ['7', '6', '5']],
  ] as const) {
    const { all, inputs } = await newest(copyOf(count).calls, 3);
    assert.equal(all, count);
    assert.deepEqual(
      inputs.map((input) => input.id),
      want,
      `of ${count}`,
    );
    assert.equal(inputs[0]?.path, `/hosted/${count}`);
  }
});

test('labels are added in one write and removed in another', async () => {
  const { calls, written } = copyOf(1);
  await label(calls, 'p', [
    { id: 'ripe', value: 1 },
    { id: 'scab', value: 0 },
    { id: 'old', value: null },
  ]);
  await label(calls, 'p', [{ id: 'ripe', value: null }]);
  const patch = (concepts: object[], action: string) => ({
    line: 'PATCH /v2/inputs',
    body: { inputs: [{ id: 'p', data: { concepts } }], action },
  });
  assert.deepEqual(written, [
    patch(
      [
        { id: 'ripe', value: 1 },
        { id: 'scab', value: 0 },
      ],
      'merge',
    ),
    patch([{ id: 'old' }], 'remove'),
    patch([{ id: 'ripe' }], 'remove'),
  ]);
});

test('the object of a conflict may be deleted or missing', async () => {
  const { calls } = copyOf(1);
  assert.deepEqual(await inForce(calls, { input_id: 'x' }), { is: 'gone' });
  assert.deepEqual(await inForce(calls, {}), { is: 'gone' });
});
