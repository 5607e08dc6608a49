import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Clause, contains, distance, fromKilometres, inKilometres, ranks } from './clause';
import { drop, ready } from './pictures';
import { address, isReadable, parse, toQuery } from './query';

const app = '0123456789abcdef0123456789abcdef';

// For each kind of clause: its name, a clause, and the same condition in the API.
const shapes: [string, Clause, object][] = [
  [
    'predicted',
    { kind: 'predicted', id: 'ai_1', name: 'apple', present: true },
    { output: { data: { concepts: [{ id: 'ai_1', name: 'apple', value: true }] } } },
  ],
  [
    'labelled absent',
    { kind: 'labelled', name: 'ripe', present: false },
    { input: { data: { concepts: [{ name: 'ripe', value: false }] } } },
  ],
  ['metadata', { kind: 'metadata', json: { crew: ['ida'] } }, { input: { data: { metadata: { crew: ['ida'] } } } }],
  [
    'within',
    { kind: 'within', latitude: 46.67, longitude: 11.16, radius: 220, unit: 'km' },
    {
      input: {
        data: {
          geo: {
            geo_point: { latitude: 46.67, longitude: 11.16 },
            geo_limit: { type: 'withinKilometers', value: 220 },
          },
        },
      },
    },
  ],
  [
    'box',
    {
      kind: 'box',
      corners: [
        { latitude: 48.3, longitude: 7.2 },
        { latitude: 44.9, longitude: 13.9 },
      ],
    },
    {
      input: {
        data: {
          geo: {
            geo_box: [
              { geo_point: { latitude: 48.3, longitude: 7.2 } },
              { geo_point: { latitude: 44.9, longitude: 13.9 } },
            ],
          },
        },
      },
    },
  ],
  [
    'address of a picture',
    { kind: 'url', url: 'https://example.org/a.jpg' },
    { input: { data: { image: { url: 'https://example.org/a.jpg' } } } },
  ],
  ['one input', { kind: 'input', id: 'a/b' }, { input: { id: 'a/b' } }],
  [
    'like a stored one',
    { kind: 'similar', id: '0198f2a1c4', crop: [0, 0, 0.5, 1] },
    { output: { input: { id: '0198f2a1c4', data: { image: { crop: [0, 0, 0.5, 1] } } } } },
  ],
  [
    'unlike an address',
    { kind: 'similar', url: 'https://example.org/a.jpg', negate: true },
    { output: { input: { data: { image: { url: 'https://example.org/a.jpg' } } } }, negate: true },
  ],
];

for (const [name, clause, shape] of shapes) {
  test(`the clause "${name}" is written to a query and read from it`, () => {
    assert.deepEqual(toQuery([clause]), { ands: [shape] });
    assert.deepEqual(parse(JSON.stringify([shape])), [clause]);
    const link = new URL(address(app, 'search', [clause]), 'http://here');
    assert.equal(link.pathname, `/${app}/search`);
    assert.deepEqual(parse(link.searchParams.get('q')), [clause]);
  });
}

test('all clauses in one query keep their order', () => {
  const clauses = shapes.map(([, clause]) => clause);
  assert.deepEqual(parse(JSON.stringify(toQuery(clauses))), clauses);
  assert.equal(address(app, 'inputs', []), `/${app}/inputs`);
});

test('every spelling of a clause is read', () => {
  const two = { input: { data: { concepts: [{ name: 'a' }, { id: 'b', value: 0 }], metadata: { c: 1 } } } };
  assert.deepEqual(parse(JSON.stringify([two])), [
    { kind: 'labelled', name: 'a', present: true },
    { kind: 'labelled', id: 'b', name: '', present: false },
    { kind: 'metadata', json: { c: 1 } },
  ]);
  const rawQuery = {
    input: { data: { geo: { longitude: 1, latitude: 2, geo_limit: { type: 'withinRadians', value: 0.1 } } } },
  };
  assert.deepEqual(parse(JSON.stringify([rawQuery])), [
    { kind: 'within', latitude: 2, longitude: 1, radius: 0.1, unit: 'rad' },
  ]);
});

test('a URL with an unreadable clause has no clauses and is reported as unreadable', () => {
  for (const q of [null, '', '[]', '{"ands":[]}', '[{"input":{"id":"a"}}]'])
    assert.equal(isReadable(q), true, String(q));
  for (const q of [
    'x',
    '1',
    'null',
    '{}',
    '[1]',
    '[null]',
    '[{"input":{"data":{"image":{}}}}]',
    '[{"output":[]}]',
    '[{"input":{"id":"a"}}',
    // A list of clauses cannot express "not (a and b)".
    '[{"input":{"data":{"concepts":[{"name":"a"},{"name":"b"}]}},"negate":true}]',
    // If parse ignored the invalid place, the search would find more pictures than requested.
    '[{"input":{"data":{"geo":{"geo_point":{"latitude":91,"longitude":0}}}}},{"input":{"id":"a"}}]',
  ]) {
    assert.equal(isReadable(q), false, q);
    assert.deepEqual(parse(q), [], q);
  }
});

test('the URL names a dropped picture, and the query has its bytes', async () => {
  const dropped = await drop(new Blob([new Uint8Array([1, 2, 3])]));
  const clause: Clause = { kind: 'similar', dropped };
  assert.equal(dropped, '039058c6f2c0cb492c533b0a');
  assert.deepEqual(toQuery([clause]), { ands: [{ output: { input: { data: { image: { base64: 'AQID' } } } } }] });
  const q = new URL(address(app, 'search', [clause]), 'http://here').searchParams.get('q');
  assert.ok(!q?.includes('AQID'));
  assert.deepEqual(parse(q), [clause]);
  assert.equal(await ready([clause]), true);
  assert.equal(await ready([{ kind: 'similar', dropped: 'ffffffffffffffffffffffff' }]), false);
});

test('lengths are converted, and a shape contains its places', () => {
  const [bozen, munich] = [
    { latitude: 46.5, longitude: 11.35 },
    { latitude: 48.14, longitude: 11.58 },
  ];
  assert.ok(Math.abs(distance(bozen, munich) - 183.2) < 0.5, String(distance(bozen, munich)));
  for (const unit of ['km', 'mi', 'deg', 'rad'] as const) {
    assert.ok(Math.abs(fromKilometres(inKilometres(1.5, unit), unit) - 1.5) < 1e-9, unit);
  }
  const circle: Clause = { kind: 'within', ...bozen, radius: 150, unit: 'km' };
  assert.equal(contains(circle, munich), false);
  assert.equal(contains({ ...circle, radius: 190 }, munich), true);
  assert.equal(contains({ ...circle, negate: true }, munich), true);
  const box: Clause = { kind: 'box', corners: [munich, { latitude: 46, longitude: 11 }] };
  assert.equal(contains(box, bozen), true);
  assert.equal(contains(box, { latitude: 47, longitude: 10.9 }), false);
});

test('predicted concepts and similar pictures put hits in an order', () => {
  assert.deepEqual(
    shapes
      .map(([, c]) => c)
      .filter(ranks)
      .map((c) => c.kind),
    ['predicted', 'similar', 'similar'],
  );
});
