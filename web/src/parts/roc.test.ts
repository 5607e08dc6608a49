import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Curve, foundAt, meanOf } from './roc';

const steep: Curve = [
  [0, 0],
  [0, 0.5],
  [0.2, 0.9],
  [1, 1],
];

test('the value of a curve is the highest at a place, on a line between its points', () => {
  assert.equal(foundAt(steep, 0), 0.5);
  assert.equal(foundAt(steep, 0.1).toFixed(6), '0.700000');
  assert.equal(foundAt(steep, 0.2).toFixed(6), '0.900000');
  assert.equal(foundAt(steep, 1), 1);
  assert.equal(foundAt([], 0.25), 0.25); // without a curve, the result is that of chance
});

test('the mean of curves lies between them and begins at 0', () => {
  const chance: Curve = [
    [0, 0],
    [1, 1],
  ];
  const mean = meanOf([steep, chance]);
  assert.equal(mean[0]?.join(), '0,0');
  assert.equal(mean.at(-1)?.join(), '1,1');
  for (const [x, y] of mean.slice(1)) assert.ok(y >= foundAt(chance, x) && y <= foundAt(steep, x), `${y} at ${x}`);
  assert.equal(meanOf([]).length, 0);
});
