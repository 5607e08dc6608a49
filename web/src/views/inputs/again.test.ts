import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waiting } from './again';
import type { Input } from './calls';

test('inputs that are added again are remembered by a page whose browser stores nothing', () => {
  Object.defineProperty(globalThis, 'localStorage', {
    get: () => {
      throw new DOMException('storage is off', 'SecurityError');
    },
  });
  const input = { id: 'a' } as Input;
  assert.deepEqual(waiting('app'), []);
  assert.deepEqual(
    waiting('app', (all) => [...all, input]),
    [input],
  );
  assert.deepEqual(waiting('app'), [input]);
  assert.deepEqual(waiting('other'), []);
  assert.deepEqual(
    waiting('app', () => []),
    [],
  );
  assert.deepEqual(waiting('app'), []);
});
