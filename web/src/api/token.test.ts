import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type IssuedToken, Token } from './token';

/** Returns a Token, its pending requests, which the test answers, and a clock that only the test advances. */
function rig() {
  const clock = { now: 0 };
  const requests: { answer: (one: IssuedToken) => void; fail: (error: Error) => void }[] = [];
  const ask = () => new Promise<IssuedToken>((answer, fail) => requests.push({ answer, fail }));
  return { clock, requests, token: new Token(ask, () => clock.now) };
}

test('waiting callers share one answer, and later callers get it too', async () => {
  const { requests, token } = rig();
  const waiting = [token.get(), token.get(), token.get()];
  assert.equal(requests.length, 1);
  requests[0]?.answer({ token: 'a', expires_in: 3600 });
  assert.deepEqual(await Promise.all(waiting), ['a', 'a', 'a']);
  assert.equal(await token.get(), 'a');
  assert.equal(requests.length, 1);
});

test('a failure rejects all waiting callers and no later one', async () => {
  const { requests, token } = rig();
  const waiting = [token.get(), token.get()];
  requests[0]?.fail(new Error('not reached'));
  for (const one of waiting) await assert.rejects(one, /not reached/);
  const next = token.get();
  assert.equal(requests.length, 2);
  requests[1]?.answer({ token: 'b', expires_in: 3600 });
  assert.equal(await next, 'b');
});

test('a token is requested again a minute before it expires, counted from its request', async () => {
  const { clock, requests, token } = rig();
  const first = token.get();
  clock.now = 9_000;
  requests[0]?.answer({ token: 'a', expires_in: 300 });
  await first;
  clock.now = 239_999;
  assert.equal(await token.get(), 'a');
  clock.now = 240_000;
  void token.get();
  void token.get();
  assert.equal(requests.length, 2);
});

test('a refused token is not used again, and the refusal of an older one changes nothing', async () => {
  const { requests, token } = rig();
  const first = token.get();
  requests[0]?.answer({ token: 'a', expires_in: 3600 });
  await first;
  token.refuse('a');
  const second = token.get();
  requests[1]?.answer({ token: 'b', expires_in: 3600 });
  assert.equal(await second, 'b');
  token.refuse('a');
  assert.equal(await token.get(), 'b');
  assert.equal(requests.length, 2);
});

test('a request without an answer delays no later caller', async () => {
  const { clock, requests, token } = rig();
  void token.get();
  clock.now = 9_999;
  void token.get();
  assert.equal(requests.length, 1);
  clock.now = 10_000;
  const later = token.get();
  assert.equal(requests.length, 2);
  requests[1]?.answer({ token: 'b', expires_in: 3600 });
  assert.equal(await later, 'b');
  requests[0]?.fail(new Error('too late'));
  await new Promise(setImmediate);
  assert.equal(await token.get(), 'b');
});
