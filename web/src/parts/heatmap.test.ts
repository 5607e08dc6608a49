import assert from 'node:assert/strict';
import { test } from 'node:test';
import { maskOf } from './heatmap';

const darkness = (pixels: Uint8ClampedArray, w: number, x: number, y: number) => pixels[4 * (y * w + x) + 3];

test('the mask is light only where the concept was seen', () => {
  const values = [0, 0, 0, 0, 0.5, 0, 0, 0, 0]; // the middle one of nine cells
  const pixels = maskOf({ box: [0, 0, 1, 1], width: 3, height: 3, values }, 30, 30);
  assert.equal(darkness(pixels, 30, 15, 15), 0);
  assert.equal(darkness(pixels, 30, 1, 1), 158);
  assert.equal(darkness(pixels, 30, 29, 15), 158);
});

test('the mask is dark outside the picture of the network', () => {
  const pixels = maskOf({ box: [0, 0.25, 1, 0.75], width: 1, height: 1, values: [1] }, 40, 20);
  assert.equal(darkness(pixels, 40, 20, 10), 0);
  assert.equal(darkness(pixels, 40, 5, 10), 158);
  assert.equal(darkness(pixels, 40, 35, 10), 158);
});
