import assert from 'node:assert/strict';
import { test } from 'node:test';
import { subject } from './auditText';

const [me, app, other] = ['a', 'b', 'c'].map((digit) => digit.repeat(32)) as [string, string, string];
const apps = [{ id: app, name: 'Orchard' }];

test('the subject of an action is a name, or an ID if it no longer exists', () => {
  assert.equal(subject(me, me, apps), '');
  assert.equal(subject('', me, apps), '');
  assert.equal(subject(app, me, apps), 'Orchard');
  assert.equal(subject(`${app}/54db60f3`, me, apps), 'Orchard');
  assert.equal(subject(`${other}/54db60f3`, me, apps), other);
  assert.equal(subject(other, me, apps), other);
});
