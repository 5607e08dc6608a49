import assert from 'node:assert/strict';
import { test } from 'node:test';
import { above, binOf, edge, leastAt, nearest } from './scale';

const scores = { from: 0.4, to: 1, counts: Array.from({ length: 60 }, (_, i) => i % 7) };

test('an edge counts the hits at or above it', () => {
  const all = scores.counts.reduce((a, b) => a + b, 0);
  assert.equal(above(scores, 0), all);
  assert.equal(above(scores, 60), 0);
  assert.equal(above(scores, 59), scores.counts[59]);
});

test('each edge is the nearest edge of its score', () => {
  for (let at = 0; at <= 60; at++) assert.equal(nearest(scores, edge(scores, at)), at);
  assert.equal(nearest(scores, 0.6837), 28);
  assert.equal(nearest(scores, 0), 0);
  assert.equal(nearest(scores, 2), 60);
  assert.equal(binOf(scores, 1), 59); // the last bin includes its upper edge
  assert.equal(binOf(scores, 0.4), 0);
  assert.equal(binOf(scores, 0.7051), 30);
});

test('a request for an edge leaves out no hit above it', () => {
  for (let at = 0; at <= 60; at++) {
    assert.ok(leastAt(scores, at) < edge(scores, at) + 1e-9); // 1e-9 is below the precision of scores, which have seven digits
    assert.ok(leastAt(scores, at) > edge(scores, at) - 2e-4);
  }
  assert.equal(leastAt({ ...scores, from: 0 }, 0), 0);
});
