// A runtime with another network opens a store. It answers with the network that analysed the pictures until it has analysed all of them
// again. Meanwhile the store's folder has the bundles of both networks, and afterwards of one.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { another } from '../another.js';
import { same, way } from '../pages/browser.js';

const { RUNTIME, SAMPLES } = process.env;
const { Sightline } = await import(pathToFileURL(join(RUNTIME, 'node.js')).href);
const examples = {
  car: ['26-green-roadster.jpg', '27-red-sports-car.jpg'],
  flower: ['32-purple-thistles.jpg', '33-thistle.jpg'],
};
const all = Object.values(examples).flat();
const base64 = (name) => readFileSync(join(SAMPLES, name)).toString('base64');
way(async (step) => {
  const folder = mkdtempSync(join(tmpdir(), 'runtime-renewal-'));
  const store = { folder: join(folder, 'store') };
  const networks = () => new Set(readdirSync(store.folder).flatMap((name) => name.match(/^network-[^-]+/) ?? [])).size;
  const next = another(folder);
  let s;
  const open = async (base) => {
    s = await Sightline.open({ base, store, workers: 1 });
  };
  const call = async (method, path, body) => {
    const r = await s.fetch(path, { method, ...(body && { body: JSON.stringify(body) }) });
    return { http: r.status, ...(await r.json()) };
  };
  const until = async (done) => {
    while (!(await done())) await new Promise((r) => setTimeout(r, 20));
  };
  const vehicles = async () => {
    const { hits } = await call('POST', '/v2/searches', {
      query: { ands: [{ output: { data: { concepts: [{ name: 'vehicle' }] } } }] },
    });
    return hits.map((h) => [h.input.id, h.score.toFixed(3)]);
  };
  const predictConcepts = async () => {
    const inputs = all.map((name) => ({ data: { image: { base64: base64(name) } } }));
    const { outputs } = await call('POST', '/v2/models/mine/outputs', { inputs });
    return outputs.map((o) => o.data.concepts[0].id);
  };
  const ids = (hits) => hits.map(([id]) => id);
  let before;

  await step('The runtime analyses pictures and trains a model with a network', async () => {
    await open(RUNTIME);
    const inputs = Object.entries(examples).flatMap(([id, names]) =>
      names.map((name) => ({
        id: name,
        data: {
          image: { base64: base64(name) },
          concepts: Object.keys(examples).map((c) => ({ id: c, value: Number(c === id) })),
        },
      })),
    );
    same((await call('POST', '/v2/inputs', { inputs })).status.code, 10000, 'status');
    await until(async () => (await call('GET', '/v2/inputs/status')).counts.processed === all.length);
    await call('POST', '/v2/models', {
      model: { id: 'mine', output_info: { data: { concepts: [{ id: 'car' }, { id: 'flower' }] } } },
    });
    await call('POST', '/v2/models/mine/versions');
    await until(async () => (await call('GET', '/v2/models/mine')).model.model_version.status.code === 21100);
    before = await vehicles();
    await s.close();
    same(networks(), 1, 'stored networks');
  });

  await step('A runtime with another network answers with the old network at first', async () => {
    await open(next);
    same(await predictConcepts(), ['car', 'car', 'flower', 'flower'], 'concepts');
    same(ids(await vehicles()), ids(before), 'hits');
    same(networks(), 2, 'stored networks');
    await s.close(); // during the re-embedding, or after it
  });

  await step('The runtime answers with its own network after the re-embedding', async () => {
    await open(next);
    await until(async () => (await vehicles())[0][1] < before[0][1]);
    same(await predictConcepts(), ['car', 'car', 'flower', 'flower'], 'concepts');
    await s.close();
  });

  await step('The runtime removes the old network from the store', async () => {
    await open(next);
    same(networks(), 1, 'stored networks');
    await s.close();
    await open(RUNTIME); // the previous runtime: it analyses all pictures again
    await until(async () => JSON.stringify(await vehicles()) === JSON.stringify(before));
    await s.close();
  });
  rmSync(folder, { recursive: true });
});
