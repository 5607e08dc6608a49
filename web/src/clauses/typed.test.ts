import assert from 'node:assert/strict';
import { test } from 'node:test';
import { typedNumber, typedPoint, typedValue, valueText } from './typed';

test('a typed place is read in each common notation', () => {
  const merano = { latitude: 46.67, longitude: 11.16 };
  for (const text of ['46.67, 11.16', '46.67 11.16', ' 46.67,11.16 ', '46.67° N, 11.16° E', '٤٦٫٦٧، ١١٫١٦']) {
    assert.deepEqual(typedPoint(text), merano, text);
  }
  assert.deepEqual(typedPoint('33.9 S, 151.2 E'), { latitude: -33.9, longitude: 151.2 });
  assert.deepEqual(typedPoint('−33.9, -70'), { latitude: -33.9, longitude: -70 });
  for (const text of ['', '46', '46, 11, 3', '91, 0', '0, 181', 'Merano'])
    assert.equal(typedPoint(text), undefined, text);
});

test('a typed length is read in each common notation', () => {
  assert.equal(typedNumber('220'), 220);
  assert.equal(typedNumber('2,5'), 2.5);
  assert.equal(typedNumber('۲۲۰'), 220);
  for (const text of ['', '-1', 'x', '1e999']) assert.equal(typedNumber(text), undefined, text);
});

test('typed values of metadata are shown as they were typed', () => {
  const tests: [string, unknown][] = [
    ['ida', 'ida'],
    ['3', 3],
    ['"3"', '3'],
    ['["ida"]', ['ida']],
    ['null', null],
  ];
  for (const [text, value] of tests) {
    assert.deepEqual(typedValue(text), value);
    assert.equal(valueText(value), text);
  }
});
