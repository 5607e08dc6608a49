import assert from 'node:assert/strict';
import { beforeEach, mock, test } from 'node:test';
import { Draft } from './draft.svelte';

const listeners = new Set<(event: KeyboardEvent) => void>();
Object.assign(globalThis, {
  addEventListener: (_: string, listen: (event: KeyboardEvent) => void) => listeners.add(listen),
  removeEventListener: (_: string, listen: (event: KeyboardEvent) => void) => listeners.delete(listen),
});
const press = (key: string) => {
  for (const listen of listeners) listen({ key, preventDefault() {}, stopPropagation() {} } as KeyboardEvent);
};

let written: number[] = [];
beforeEach(() => {
  written = [];
  mock.timers.reset();
  mock.timers.enable({ apis: ['setTimeout'] });
});
const draft = () =>
  new Draft<number>(
    () => written.at(-1) ?? 0,
    (value) => written.push(value),
  );

test('a drag is written once, at its end', () => {
  const one = draft();
  one.begin();
  for (const value of [1, 2, 3]) {
    one.move(value);
    mock.timers.tick(10_000);
    assert.deepEqual([one.value, written], [value, []]);
  }
  one.commit();
  one.move(4);
  assert.deepEqual([one.value, written, listeners.size], [3, [3], 0]);
});

test('Escape cancels a drag, and moves after it change nothing', () => {
  const one = draft();
  one.begin();
  one.move(1);
  press('Enter');
  assert.equal(one.value, 1);
  press('Escape');
  one.move(2);
  one.commit();
  assert.deepEqual([one.value, one.restored, written], [0, 1, []]);
});

test('key presses are written half a second after the last one', () => {
  const one = draft();
  for (const value of [1, 2, 3]) {
    one.press(value);
    mock.timers.tick(499);
    assert.deepEqual([one.value, written], [value, []]);
  }
  mock.timers.tick(1);
  assert.deepEqual([one.value, written], [3, [3]]);
  one.press(4);
  press('Escape');
  mock.timers.tick(500);
  assert.deepEqual([one.value, written], [3, [3]]);
  one.press(5);
  one.leave();
  one.leave();
  mock.timers.tick(500);
  assert.deepEqual(written, [3, 5]);
  one.begin();
  one.move(6);
  one.leave(); // a drag continues without the focus
  assert.deepEqual([one.value, written], [6, [3, 5]]);
});
