import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Application } from '../../application.svelte';
import { Adding } from './adding.svelte';
import type { Source } from './sources';

// The part of the browser's FileReader that the pages use.
class Reader {
  result = '';
  onload = () => {};
  async readAsDataURL(blob: Blob) {
    this.result = `data:;base64,${Buffer.from(await blob.arrayBuffer()).toString('base64')}`;
    this.onload();
  }
}
globalThis.FileReader = Reader as unknown as typeof FileReader;

const answer = (body: object) => Response.json({ status: { code: 10000 }, ...body });
const duplicate = (tier: string) => answer({ duplicates: [{ input: { id: 'older' }, tier }] });

/** Returns an application. Its replica finds a similar input, and its origin finds that both are the same picture, re-encoded. */
function applicationOf() {
  let arrive: (sent: boolean) => void = () => {};
  const arrival = new Promise<boolean>((resolve) => {
    arrive = resolve;
  });
  const app = {
    by: 'device',
    offline: false,
    requestCount: 0, // number of requests to the origin
    arrive,
    waitUntilSent: () => arrival,
    send: async (_: string, init: RequestInit) => {
      const { inputs } = JSON.parse(init.body as string) as { inputs: { id: string }[] };
      return answer({ inputs: inputs.map(({ id }) => ({ id, status: { code: 30000, description: 'ok' } })) });
    },
    ask: async () => duplicate('similar'),
    askRemote: async () => {
      app.requestCount++;
      return duplicate('re_encoded');
    },
  };
  return app;
}

/** Adds a picture, and returns its entry once the replica has found its duplicate. */
async function addPicture(app: ReturnType<typeof applicationOf>) {
  const adding = new Adding(app as unknown as Application);
  await adding.take([{ name: 'new.jpg', blob: new Blob(['a picture']) } as Source]);
  while (!adding.entries[0]?.twin) await new Promise(setImmediate);
  return adding.entries[0];
}

test('the origin is not asked about an input before it has the input', async () => {
  const app = applicationOf();
  const entry = await addPicture(app);
  for (let i = 0; i < 5; i++) await new Promise(setImmediate);
  assert.equal(app.requestCount, 0);
  assert.equal(entry.twin?.tier, 'similar');
  app.arrive(true);
  while (entry.twin?.tier === 'similar') await new Promise(setImmediate);
  assert.deepEqual([app.requestCount, entry.twin], [1, { tier: 're_encoded', id: 'older' }]);
});

test('the answer of the copy stays where the origin is out of reach', async () => {
  const app = applicationOf();
  const entry = await addPicture(app);
  app.arrive(false);
  for (let i = 0; i < 5; i++) await new Promise(setImmediate);
  assert.deepEqual([app.requestCount, entry.twin?.tier], [0, 'similar']);
});
