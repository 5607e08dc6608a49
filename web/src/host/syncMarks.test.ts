import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  contactOf,
  countUnsentPictures,
  type MarkKind,
  markOf,
  marksOf,
  summaryParts,
  versionKey,
  worstMark,
} from './syncMarks';

test('the worst mark represents all', () => {
  const cases: [MarkKind[], MarkKind | undefined][] = [
    [[], undefined],
    [['confirmed'], 'confirmed'],
    [['confirmed', 'local'], 'local'],
    [['confirmed', 'sent', 'local'], 'sent'],
    [['sent', 'queued', 'confirmed'], 'queued'],
    [['queued', 'conflict', 'sent'], 'conflict'],
  ];
  for (const [all, want] of cases) assert.equal(worstMark(all), want, all.join());
});

test('an object has the mark of its worst change, and no mark of other changes', () => {
  const waiting = [
    { input_id: 'a', state: 'sent' },
    { input_id: 'a', state: 'queued' },
    { input_id: 'b', state: 'sent' },
    { model_id: 'b', state: 'queued' },
    { concept_id: 'c', state: 'queued' },
  ] as const;
  const { inputs, models } = marksOf(waiting, [{ input_id: 'b' }, { input_id: 'd' }, {}]);
  assert.deepEqual([...inputs].sort(), [
    ['a', 'queued'],
    ['b', 'conflict'],
    ['d', 'conflict'],
  ]);
  assert.deepEqual([...models], [['b', 'queued']]);
});

test('each version has its own mark, so an older one that the origin lacks is not confirmed', () => {
  const waiting = [
    { kind: 'model_create', model_id: 'm', version_id: 'v1', state: 'sent' },
    { kind: 'version_train', model_id: 'm', version_id: 'v2', state: 'sent' },
    { kind: 'version_result', model_id: 'm', version_id: 'v2', state: 'queued' },
    { kind: 'model_patch', model_id: 'm', state: 'queued' }, // a new name
    { kind: 'feedback', model_id: 'm', version_id: 'v4', state: 'queued' },
  ] as const;
  const conflicts = [{ kind: 'version_train', model_id: 'm', version_id: 'v3' }];
  const { versions } = marksOf(waiting, conflicts);
  assert.deepEqual(
    ['v1', 'v2', 'v3', 'v4'].map((version) => versions.get(versionKey('m', version))),
    ['sent', 'queued', 'conflict', undefined],
  );
});

test('a change has no tick before the log confirms it', () => {
  const none = { queued: 0, sent: 0, conflicts: 0, reached: true };
  assert.equal(markOf(none), 'confirmed');
  assert.equal(markOf({ ...none, reached: false }), undefined);
  assert.equal(markOf({ ...none, sent: 1 }), 'sent');
  assert.equal(markOf({ ...none, sent: 1, queued: 3 }), 'queued');
  assert.equal(markOf({ ...none, queued: 3, reached: false }), 'queued');
  assert.equal(markOf({ ...none, queued: 3, conflicts: 1 }), 'conflict');
});

test('the status line never contradicts itself, in any combination', () => {
  const now = Date.parse('2026-07-31T12:00:00Z');
  const before = (ms: number) => new Date(now - ms).toISOString();
  let cases = 0;
  for (const queued of [0, 3])
    for (const sent of [0, 1])
      for (const conflicts of [0, 10])
        for (const reached of [false, true])
          for (const offline of [false, true])
            for (const contact of ['', before(0), before(59_000), before(61_000), before(86_400_000)]) {
              const summary = { queued, sent, conflicts, reached };
              const [parts, met, mark] = [
                summaryParts(summary, offline),
                contactOf(summary, offline, contact, now),
                markOf(summary),
              ];
              const context = JSON.stringify({ ...summary, offline, contact, parts, met });
              const counts = queued + sent + conflicts > 0;
              // The parts are exactly the counts above 0.
              assert.deepEqual(
                parts.filter((one) => one === 'queued' || one === 'sent' || one === 'conflicts'),
                [...(queued ? ['queued'] : []), ...(sent ? ['sent'] : []), ...(conflicts ? ['conflicts'] : [])],
                context,
              );
              assert.equal(parts.includes('confirmed'), !counts && reached, context);
              assert.equal(parts.includes('confirmed'), mark === 'confirmed', context);
              assert.equal(parts.includes('unreached'), !counts && !reached, context);
              // The sync summary and the contact do not contradict each other.
              if (offline) assert.ok(['never', 'lost', 'before'].includes(met), context);
              else assert.ok(['never', 'seeking', 'connected'].includes(met), context);
              if (parts.includes('offline')) assert.notEqual(met, 'connected', context);
              if (met === 'connected') assert.ok(contact, context);
              if (met === 'before') assert.ok(now - Date.parse(contact) >= 60_000, context);
              if (met === 'never') assert.ok(!parts.includes('confirmed'), context);
              cases++;
            }
  assert.equal(cases, 160);
});

test('a picture counts as unsent until the origin has it', () => {
  const o = (kind: string, state: 'queued' | 'sent') => ({ kind, state });
  assert.equal(countUnsentPictures([]), 0);
  const waiting = [
    o('input_create', 'sent'),
    o('input_create', 'queued'),
    o('input_labels', 'queued'),
    o('input_create', 'queued'),
  ];
  assert.equal(countUnsentPictures(waiting), 2);
});
