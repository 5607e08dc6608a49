import assert from 'node:assert/strict';
import { test } from 'node:test';
import { v2 } from '../../api/client';
import { readSimilar } from './calls';

/** Returns an application with these similarity scores by picture. Its search has a cut-off only if one is given. */
function applicationOf(scores: Record<string, number>, cutOff?: number) {
  const from = (least = 0) =>
    Object.entries(scores)
      .filter(([, score]) => score >= least)
      .sort(([, a], [, b]) => b - a);
  const answer = (path: string, body?: { query: { min_score?: number }; summary?: object }) => {
    if (path.includes('/duplicates')) return { duplicates: [{ input: { id: 'copy' }, score: 0.2, tier: 'same_file' }] };
    const found = from(body?.query.min_score);
    if (path === '/v2/searches') return { hits: found.map(([id, score]) => ({ input: { id }, score })) };
    const scores = cutOff && body?.summary && { scores: { cut_off: { value: cutOff } } };
    return { summary: { matching: found.length, ...scores } };
  };
  return {
    by: 'origin' as const,
    v2: v2(async (path, init) => {
      const body = init?.body && JSON.parse(String(init.body));
      return Response.json({ status: { code: 10000 }, ...answer(path, body) });
    }),
  };
}

test('similar pictures reach the cut-off; the same file is first', async () => {
  const { pictures, count, cut } = await readSimilar(applicationOf({ one: 1, near: 0.7, other: 0.3 }, 0.6), 'one', 7);
  assert.deepEqual(
    pictures.map((s) => [s.id, s.tier]),
    [
      ['copy', 'same_file'],
      ['near', 'similar'],
    ],
  );
  assert.deepEqual([count, cut], [1, 0.6]);
});

test('all pictures are similar without a cut-off', async () => {
  const { pictures, count, cut } = await readSimilar(applicationOf({ one: 1, near: 0.7, other: 0.3 }), 'one', 2);
  assert.deepEqual(
    pictures.map((s) => s.id),
    ['copy', 'near'],
  );
  assert.deepEqual([count, cut], [2, 0]);
});
