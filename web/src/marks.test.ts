import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Mark, markOf, marksOf, worst } from './marks';

test('the worst mark stands for all', () => {
  const cases: [Mark[], Mark | undefined][] = [
    [[], undefined],
    [['confirmed'], 'confirmed'],
    [['confirmed', 'local'], 'local'],
    [['confirmed', 'sent', 'local'], 'sent'],
    [['sent', 'queued', 'confirmed'], 'queued'],
    [['queued', 'conflict', 'sent'], 'conflict'],
  ];
  for (const [all, want] of cases) assert.equal(worst(all), want, all.join());
});

test('a thing has the mark of its worst change, and none of what is not about it', () => {
  const waiting = [
    { input_id: 'a', state: 'sent' },
    { input_id: 'a', state: 'queued' },
    { input_id: 'b', state: 'sent' },
    { model_id: 'b', state: 'queued' },
    { concept_id: 'c', state: 'queued' },
  ] as const;
  const found = marksOf('input_id', waiting, [{ input_id: 'b' }, { input_id: 'd' }, {}]);
  assert.deepEqual([...found].sort(), [
    ['a', 'queued'],
    ['b', 'conflict'],
    ['d', 'conflict'],
  ]);
  assert.deepEqual([...marksOf('model_id', waiting, [])], [['b', 'queued']]);
});

test('no tick before the log has said so', () => {
  const none = { queued: 0, sent: 0, conflicts: 0, reached: true };
  assert.equal(markOf(none), 'confirmed');
  assert.equal(markOf({ ...none, reached: false }), undefined);
  assert.equal(markOf({ ...none, sent: 1 }), 'sent');
  assert.equal(markOf({ ...none, sent: 1, queued: 3 }), 'queued');
  assert.equal(markOf({ ...none, queued: 3, reached: false }), 'queued');
  assert.equal(markOf({ ...none, queued: 3, conflicts: 1 }), 'conflict');
});
