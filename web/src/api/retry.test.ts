import assert from 'node:assert/strict';
import { test } from 'node:test';
import { v2 } from './client';
import { Failure } from './console';
import { withRetry } from './retry';

/** Returns a caller with a server that gives these answers in turn, and records the calls and the waits in seconds. */
function rig(...answers: [status: number, wait?: number][]) {
  const waits: number[] = [];
  const requests = { times: 0 };
  const ask = async () => {
    const [status, wait] = answers[requests.times++] ?? assert.fail('it was asked once more');
    const body = { status: { code: status === 200 ? 10000 : 11005, description: 'Too Many Requests' } };
    return Response.json(body, { status, ...(wait !== undefined && { headers: { 'Retry-After': String(wait) } }) });
  };
  const pause = async (seconds: number) => void waits.push(seconds);
  return { waits, requests, patient: (method?: string) => withRetry(ask, method, pause) };
}

test('a request over the rate is repeated after the time in the answer', async () => {
  const { waits, patient } = rig([429, 1], [429, 3], [200]);
  assert.equal((await patient()).status, 200);
  assert.deepEqual(waits, [1, 3]);
});

test('a picture that a busy server refuses is requested again', async () => {
  for (const method of ['GET', 'HEAD']) {
    const { waits, patient } = rig([503, 2], [429, 1], [200]);
    assert.equal((await patient(method)).status, 200);
    assert.deepEqual(waits, [2, 1]);
  }
});

test('other answers are returned at once', async () => {
  for (const [method, one] of [
    ['GET', [200]],
    ['GET', [402]],
    ['GET', [404, 1]],
    ['GET', [429]],
    ['GET', [503]],
    ['POST', [503, 1]], // the server may have begun the write
  ] as [string, [number, number?]][]) {
    const { waits, patient } = rig(one);
    assert.equal((await patient(method)).status, one[0]);
    assert.deepEqual(waits, []);
  }
});

test('a long wait is not made, and the failure has its time', async () => {
  const far = rig([429, 11]);
  assert.equal((await far.patient()).status, 429);
  assert.deepEqual(far.waits, []);
  const long = rig([429, 4], [429, 4], [429, 4]);
  const refusal = await v2(() => long.patient())
    .GET('/inputs')
    .catch((failure) => failure);
  assert.ok(refusal instanceof Failure);
  assert.deepEqual([refusal.status, refusal.code, refusal.retryAfter], [429, 11005, 4]);
  assert.deepEqual(long.waits, [4, 4]);
});
