import assert from 'node:assert/strict';
import { test } from 'node:test';
import { authorizationOf, span, tooOld } from './keys';

test('a span is shown in whole units', () => {
  assert.deepEqual([3600, 5400, 86_400, 172_800, 90_000, 604_800].map(span), [
    [1, 'hour'],
    [90, 'minute'],
    [24, 'hour'],
    [2, 'day'],
    [25, 'hour'],
    [7, 'day'],
  ]);
});

test('keys are too old once the edge accepts no more writes', () => {
  const keys = { known: '2026-11-22T09:00:00Z', writes_seconds: 7200, reads_seconds: 604_800 };
  assert.equal(tooOld(keys, Date.parse('2026-11-22T11:00:00Z')), false);
  assert.equal(tooOld(keys, Date.parse('2026-11-22T11:00:01Z')), true);
  assert.equal(tooOld({ ...keys, known: undefined }, Date.parse('2026-11-22T09:00:00Z')), true);
});

test('a pasted key is accepted with or without its header, and an empty one is ignored', () => {
  const key = '0123456789abcdef0123456789abcdef';
  for (const text of [key, ` ${key.toUpperCase()}\n`, `Key ${key}`, `Authorization: Key ${key}`])
    assert.equal(authorizationOf(text), `Key ${key}`, text);
  assert.equal(authorizationOf('bearer a.b.c'), 'Bearer a.b.c');
  for (const text of ['', ' \n', 'Key', 'Key ', 'Bearer ', 'Authorization:', 'Authorization: Key '])
    assert.equal(authorizationOf(text), '', JSON.stringify(text));
});
