import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Metrics, Version } from './calls';
import { numbered } from './versions';
import { confusion, weakest } from './weak';

const at = (id: string, code: number) => ({ id, status: { code } }) as Version;

test('versions are numbered in their order, and one that failed takes no number', () => {
  const newestFirst = [at('d', 21103), at('c', 21111), at('b', 21100), at('a', 21100)];
  assert.deepEqual(
    numbered(newestFirst).map((v) => [v.id, v.number]),
    [
      ['d', 3],
      ['c', 3],
      ['b', 2],
      ['a', 1],
    ],
  );
});

const said = (id: string, value: number) => ({ id, name: id, value });
const metrics = {
  pictures: 20,
  test_set: [
    { id: 'p1', predicted_concepts: [said('ripe', 0.2), said('scab', 0.7)], ground_truth_concepts: [said('ripe', 1)] },
    {
      id: 'p2',
      predicted_concepts: [said('scab', 0.6)],
      ground_truth_concepts: [said('scab', 0), said('ripe', 1)],
    },
    { id: 'p3', predicted_concepts: [said('ripe', 0.9)], ground_truth_concepts: [said('ripe', 1)] },
  ],
  binary_metrics: [
    { num_pos: 4, concept: { id: 'ripe', name: 'ripe' } },
    { num_pos: 2, concept: { id: 'scab', name: 'scab' } },
  ],
  confusion_matrix: {
    concept_ids: ['ripe', 'scab'],
    matrix: [
      { actual: 'ripe', predicted: 'ripe', value: 0.75, count: 3 },
      { actual: 'ripe', value: 0.25, count: 1 },
      { actual: 'scab', predicted: 'scab', value: 1, count: 2 },
      { value: 1, count: 5 },
    ],
  },
} as unknown as Metrics;

test('the weakest pictures are those in doubt, with what they show and what they are taken for', () => {
  assert.deepEqual(
    weakest(metrics).map((w) => [w.input, w.concept.id, w.yes, w.shows, w.said.id]),
    [
      ['p1', 'ripe', true, 'ripe', 'scab'],
      ['p2', 'scab', false, 'ripe', 'scab'],
    ],
  );
  assert.deepEqual(weakest(null), []);
});

test('a cell of the confusion counts its pictures and opens them', () => {
  const { names, cells } = confusion(metrics, 'a'.repeat(32), 'none');
  assert.deepEqual(names, ['ripe', 'scab', 'none']);
  assert.deepEqual(
    cells.map((row) => row.map((c) => c.count)),
    [
      [3, 0, 1],
      [0, 2, 0],
      [0, 0, 5],
    ],
  );
  const query = (href: string | undefined) =>
    JSON.parse(new URL(href ?? '', 'http://here').searchParams.get('q') ?? '');
  assert.deepEqual(query(cells[0]?.[0]?.href), [
    { input: { data: { concepts: [{ id: 'ripe', name: 'ripe', value: true }] } } },
    { output: { data: { concepts: [{ id: 'ripe', name: 'ripe', value: true }] } } },
  ]);
  assert.equal(query(cells[2]?.[2]?.href).length, 4); // none is labelled, none is predicted
});
