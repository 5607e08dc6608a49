import assert from 'node:assert/strict';
import { test } from 'node:test';
import { retryQueue } from './again';
import type { Input } from './calls';

test('a page remembers inputs to add again, even if its browser stores nothing', () => {
  Object.defineProperty(globalThis, 'localStorage', {
    get: () => {
      throw new DOMException('storage is off', 'SecurityError');
    },
  });
  const input = { id: 'a' } as Input;
  assert.deepEqual(retryQueue('app'), []);
  assert.deepEqual(
    retryQueue('app', (all) => [...all, input]),
    [input],
  );
  assert.deepEqual(retryQueue('app'), [input]);
  assert.deepEqual(retryQueue('other'), []);
  assert.deepEqual(
    retryQueue('app', () => []),
    [],
  );
  assert.deepEqual(retryQueue('app'), []);
});
