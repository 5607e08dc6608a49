// A runtime answers before it has the background of its network, which only trainings need. A training waits for it.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { check, same, way } from '../pages/browser.js';

const { RUNTIME, SAMPLES } = process.env;
const { Sightline } = await import(pathToFileURL(join(RUNTIME, 'node.js')).href);
const general = 'aaa03c23b3724a16a56b629203edc62c';
const base64 = (name) => readFileSync(join(SAMPLES, name)).toString('base64');
const trained = 21100;

way(async (step) => {
  let requestCount = 0; // requests for the background; the first fails, and the others wait for `release`
  let release;
  const released = new Promise((resolve) => {
    release = resolve;
  });
  const server = createServer(async (request, response) => {
    const name = new URL(request.url, 'http://x').pathname;
    if (/^\/background-/.test(name)) {
      if (++requestCount === 1) return response.writeHead(503).end();
      await released;
    }
    const type = name.endsWith('.wasm') ? 'application/wasm' : 'application/octet-stream';
    response.writeHead(200, { 'Content-Type': type }).end(readFileSync(join(RUNTIME, name)));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const s = await Sightline.open({ base: `http://127.0.0.1:${server.address().port}/`, workers: 1 });
  const call = async (method, path, body) => {
    const r = await s.fetch(path, { method, ...(body && { body: JSON.stringify(body) }) });
    return { http: r.status, ...(await r.json()) };
  };
  const until = async (done) => {
    while (!(await done())) await new Promise((r) => setTimeout(r, 20));
  };
  const version = async () => (await call('GET', '/v2/models/mine')).model.model_version.status.code;

  await step('The engine predicts without the background', async () => {
    const { outputs } = await call('POST', `/v2/models/${general}/outputs`, {
      inputs: [{ data: { image: { base64: base64('42-lighthouse-in-the-sea.jpg') } } }],
    });
    check(
      outputs[0].data.concepts.some(({ name }) => name === 'lighthouse'),
      `it has ${outputs[0].data.concepts.map(({ name }) => name)}`,
    );
  });

  await step('A training loads the background and waits for it', async () => {
    const examples = { car: '27-red-sports-car.jpg', flower: '33-thistle.jpg' };
    const inputs = Object.entries(examples).map(([concept, name]) => ({
      data: {
        image: { base64: base64(name) },
        concepts: Object.keys(examples).map((id) => ({ id, value: Number(id === concept) })),
      },
    }));
    same((await call('POST', '/v2/inputs', { inputs })).http, 200, 'status of the inputs');
    await until(async () => (await call('GET', '/v2/inputs/status')).counts.processed === inputs.length);
    const concepts = Object.keys(examples).map((id) => ({ id }));
    await call('POST', '/v2/models', { model: { id: 'mine', output_info: { data: { concepts } } } });
    same((await call('POST', '/v2/models/mine/versions')).http, 200, 'status of the training');
    await until(() => requestCount === 2);
    check((await version()) !== trained, 'it was trained without the background');
    release();
    await until(async () => (await version()) === trained);
    same(requestCount, 2, 'requests for the background');
  });

  await s.close();
  server.close();
});
