import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Notice, withNotices } from './notices';

test('the notices of an answer come from its header', async () => {
  let taken: readonly Notice[] | undefined;
  const ask = (headers: Record<string, string>) =>
    withNotices(
      async () => new Response('{}', { headers }),
      (notices) => {
        taken = notices;
      },
    )('/v2/searches');
  const notice = { at: 'query.ands[0].output.data.concepts[0].name', text: 'buterfly: no such concept; butterfly?' };
  assert.equal(await (await ask({ 'X-Sightline-Notice': JSON.stringify([notice]) })).text(), '{}');
  assert.deepEqual(taken, [notice]);
  await ask({});
  assert.deepEqual(taken, []);
});
