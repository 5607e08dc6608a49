import assert from 'node:assert/strict';
import { test } from 'node:test';
import { claimOfflineApps, isForeign, ownOfflineApps, saveOfflineApp } from './offlineApps';

const values = new Map<string, string>();
Object.defineProperty(globalThis, 'localStorage', {
  value: {
    getItem: (name: string) => values.get(name) ?? null,
    setItem: (name: string, value: string) => values.set(name, value),
    removeItem: (name: string) => values.delete(name),
  },
});

const ids = () => ownOfflineApps().map(({ id }) => id);

test('a replica opens without a network only for the account of the last session, until a sign-out', () => {
  values.clear();
  saveOfflineApp({ id: 'x', name: 'X', language: 'en', account: 'ada' });
  assert.deepEqual(ids(), [], 'nobody was here');
  values.set('account', 'ada');
  assert.deepEqual(ids(), ['x']);
  assert.equal(isForeign('x'), false);
  values.set('account', 'bo');
  assert.deepEqual(ids(), [], 'another account');
  assert.equal(isForeign('x'), true);
  values.delete('account');
  assert.deepEqual(ids(), [], 'after a sign-out');
  assert.equal(isForeign('x'), true);
});

test('a replica without an account gets the account that owns its application, once', () => {
  values.clear();
  for (const id of ['x', 'y']) saveOfflineApp({ id, name: id, language: 'en' });
  values.set('account', 'ada');
  assert.deepEqual(ids(), [], 'copies without an account');
  assert.equal(isForeign('x'), false, 'a session that owns the application opens it');
  claimOfflineApps('ada', [{ id: 'x' }, { id: 'z' }]);
  assert.deepEqual(ids(), ['x']);
  claimOfflineApps('bo', [{ id: 'x' }, { id: 'y' }]);
  values.set('account', 'bo');
  assert.deepEqual(ids(), ['y']);
});
