import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Application } from '../../host/application.svelte';
import { isWithoutLabels, type Metrics, type Version } from './calls';
import { confusion, uncheckedConcepts, weakest } from './doubtfulLabels';
import { conceptQuality, listed, markOfVersion, numberVersions, trainingChanges, unmetPromises } from './versions';

const at = (id: string, code: number) => ({ id, status: { code } }) as Version;

test('versions are numbered in their order, and a failed one has no number', () => {
  const newestFirst = [at('d', 21103), at('c', 21111), at('b', 21100), at('a', 21100)];
  assert.deepEqual(
    numberVersions(newestFirst).map((v) => [v.id, v.number]),
    [
      ['d', 3],
      ['c', 3],
      ['b', 2],
      ['a', 1],
    ],
  );
});

test('the details of a version show that it was trained without a labelled picture', () => {
  assert.equal(isWithoutLabels(at('a', 21100)), false);
  const withDetails = (code: number) => ({ id: 'b', status: { code, details: 'No picture is labelled.' } }) as Version;
  assert.deepEqual([21100, 21111].map(withDetails).map(isWithoutLabels), [true, false]);
});

const metricsOf = (pictures: number, rest: object = {}) => ({ pictures, ...rest }) as Metrics;
const since = (new_inputs: number, corrected_inputs: number) => ({
  since: { version_id: 'v1', new_inputs, corrected_inputs },
});

test('a version has the numbers of its new pictures and corrected labels', () => {
  assert.deepEqual(trainingChanges(metricsOf(12, since(6, 1)), metricsOf(8)), { more: 6, corrected: 1 }); // six were added and two removed
  assert.deepEqual(trainingChanges(metricsOf(8, since(0, 2)), metricsOf(8)), { more: 0, corrected: 2 });
  assert.deepEqual(trainingChanges(metricsOf(7, since(0, 0)), metricsOf(8)), { more: -1, corrected: 0 });
  assert.deepEqual(trainingChanges(metricsOf(9), metricsOf(8)), { more: 1, corrected: 0 }); // a host that does not report `since`
  assert.deepEqual(trainingChanges(metricsOf(9), undefined), { more: 0, corrected: 0 });
});

test('precision and recall are read at the cut-off, or at one value for all without cut-offs', () => {
  const curve = { precision: [0.5], recall: [0.25], thresholds: [0.4] };
  const older = { precision_recall_curve: curve };
  const concepts = [{ id: 'a', cut_off: 0.3, precision: 1, recall: 0.75 }, { id: 'b' }];
  assert.deepEqual(conceptQuality(metricsOf(9, { binary_metrics: [older, older], sightline: { concepts } })), {
    at: undefined,
    byConcept: [{ precision: 1, recall: 0.75 }, undefined],
  });
  assert.deepEqual(conceptQuality(metricsOf(9, { binary_metrics: [older] })), {
    at: 0.4,
    byConcept: [{ precision: 0.5, recall: 0.25 }],
  });
});

test('a cut-off misses its promise if cross-validation supports less', () => {
  const metricsNamed = (name: string) => ({ concept: { id: name, name } });
  const concepts = [{ id: 'a', supported_precision: 0.59 }, { id: 'b', supported_precision: 0.9 }, { id: 'c' }];
  const binary_metrics = ['Bird', 'Bee', 'Bat'].map(metricsNamed);
  const metrics = metricsOf(9, { binary_metrics, sightline: { promised_precision: 0.9, concepts } });
  assert.deepEqual(unmetPromises(metrics), [{ name: 'Bird', supported: 0.59 }]);
  assert.deepEqual(unmetPromises(metricsOf(9, { binary_metrics, sightline: { concepts } })), []); // an older program promises nothing
  assert.deepEqual(unmetPromises(metricsOf(9, { binary_metrics })), []);
});

const conceptValue = (id: string, value: number) => ({ id, name: id, value });
const metrics = {
  pictures: 20,
  test_set: [
    {
      id: 'p1',
      predicted_concepts: [conceptValue('ripe', 0.2), conceptValue('scab', 0.7)],
      ground_truth_concepts: [conceptValue('ripe', 1)],
    },
    {
      id: 'p2',
      predicted_concepts: [conceptValue('scab', 0.6)],
      ground_truth_concepts: [conceptValue('scab', 0), conceptValue('ripe', 1)],
    },
    { id: 'p3', predicted_concepts: [conceptValue('ripe', 0.9)], ground_truth_concepts: [conceptValue('ripe', 1)] },
  ],
  binary_metrics: [
    { num_pos: 4, concept: { id: 'ripe', name: 'ripe' } },
    { num_pos: 2, concept: { id: 'scab', name: 'scab' } },
  ],
  confusion_matrix: {
    concept_ids: ['ripe', 'scab'],
    matrix: [
      { actual: 'ripe', predicted: 'ripe', value: 0.75 },
      { actual: 'ripe', value: 0.25 },
      { actual: 'scab', predicted: 'scab', value: 1 },
      { value: 1 },
    ],
  },
  sightline: { confusion_counts: [3, 1, 2, 5], min_checked_pictures: 4 },
} as unknown as Metrics;

test('each label to check has the label and the prediction of its picture', () => {
  assert.deepEqual(
    weakest(metrics).map((w) => [w.input, w.concept.id, w.yes, w.shows, w.predicted.id]),
    [
      ['p1', 'ripe', true, 'ripe', 'scab'],
      ['p2', 'scab', false, 'ripe', 'scab'],
      ['p3', 'ripe', true, 'ripe', 'ripe'], // the server alone decides which labels are within chance
    ],
  );
  assert.deepEqual(weakest(null), []);
});

test('a concept with too few pictures needs more of them before its labels are checked', () => {
  assert.deepEqual(uncheckedConcepts(metrics), [{ id: 'scab', name: 'scab', needed: 4 }]); // ripe has exactly 4
  const older = { ...metrics, sightline: { confusion_counts: [3, 1, 2, 5] } } as unknown as Metrics;
  assert.deepEqual([older, null, undefined].map(uncheckedConcepts), [[], [], []]);
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
  assert.equal(query(cells[2]?.[2]?.href).length, 4); // neither concept is labelled, and neither is predicted
});

test('the list of versions has those that are trained or in training, and the newest also if it failed', () => {
  const all = [at('e', 21110), at('d', 21100), at('c', 21110), at('b', 21101)];
  const ids = (versions: readonly Version[]) => listed(versions).map(({ id }) => id);
  assert.deepEqual([ids(all), ids(all.slice(1)), ids([])], [['e', 'd', 'b'], ['d', 'b'], []]);
});

test('the operations of a version give it its mark, and in training it is never confirmed', () => {
  const markOf = (what: string, key: string) => (what === 'versions' && key === 'm/a' ? 'queued' : 'confirmed');
  const mark = (version: Version) => markOfVersion({ markOf } as unknown as Application, 'm', version);
  assert.deepEqual([at('a', 21100), at('b', 21100), at('a', 21101), at('b', 21103)].map(mark), [
    'queued',
    'confirmed',
    'queued',
    undefined,
  ]);
});
