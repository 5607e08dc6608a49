import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Layout, recycle, type Slot } from './layout';

const metrics = { columns: 4, row: 100, head: 30, foot: 10 };

test('the runs are below each other, each under its heading', () => {
  const layout = new Layout([5, 4], metrics);
  assert.equal(layout.height, 30 + 200 + 10 + (30 + 100 + 10));
  assert.equal(layout.rows, 5);
  assert.deepEqual(
    layout.between(0, layout.height).map(({ head, first, count, top }) => [head, first, count, top]),
    [
      [true, 0, 5, 0],
      [false, 0, 4, 30],
      [false, 4, 1, 130],
      [true, 5, 4, 240],
      [false, 5, 4, 270],
    ],
  );
});

test('only visible rows are found, also among a hundred thousand cells', () => {
  const layout = new Layout([60_000, 40_000], metrics);
  const rows = layout.between(1_000_000, 1_000_250);
  assert.deepEqual(
    rows.map(({ first }) => first),
    [39_996, 40_000, 40_004, 40_008],
  );
  for (const row of rows) assert.equal(layout.rowOf(row.first + 3).index, row.index);
});

test('moving keeps the column across runs and ends in the last run', () => {
  const layout = new Layout([5, 4], metrics);
  assert.equal(layout.move(0, 1), 4);
  assert.equal(layout.move(2, 1), 4); // the next row has one cell
  assert.equal(layout.move(4, 1), 5);
  assert.equal(layout.move(7, -2), 2);
  assert.equal(layout.move(7, 9), 7);
  assert.equal(layout.move(1, -9), 1);
});

test('a row that is no longer visible gives its element to the next row of its kind', () => {
  const layout = new Layout([400], metrics);
  let next = 0;
  const fresh = () => next++;
  const rowsAt = (at: number) => layout.between(at, at + 300);
  let slots: Slot[] = recycle([], rowsAt(0), fresh);
  const before = new Map(slots.map(({ key, row }) => [row.index, key]));
  slots = recycle(slots, rowsAt(100), fresh);
  for (const { key, row } of slots) if (before.has(row.index)) assert.equal(key, before.get(row.index));
  for (let at = 200; at < 5000; at += 100) slots = recycle(slots, rowsAt(at), fresh);
  assert.ok(next <= 5, `${next} places for a heading and four rows`);
  assert.equal(new Set(slots.map(({ key }) => key)).size, slots.length);
});
