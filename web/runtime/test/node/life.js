// Uses the runtime in Node as a program does: in memory, and with the files of a folder in several processes.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { check, same, way } from '../pages/browser.js';

const { RUNTIME, SAMPLES } = process.env;
const { Sightline } = await import(pathToFileURL(join(RUNTIME, 'node.js')).href);
const general = 'aaa03c23b3724a16a56b629203edc62c';
const base64 = (name) => readFileSync(join(SAMPLES, name)).toString('base64');

way(async (step) => {
  const folder = mkdtempSync(join(tmpdir(), 'runtime-node-'));
  let s;
  const call = async (method, path, body) => {
    const r = await s.fetch(path, { method, ...(body && { body: JSON.stringify(body) }) });
    return { http: r.status, ...(await r.json()) };
  };
  const ready = async (n) => {
    for (;;) {
      const { inputs } = await call('GET', '/v2/inputs?per_page=1000');
      if (inputs.filter((i) => i.status.code === 30000).length === n) return;
      await new Promise((r) => setTimeout(r, 20));
    }
  };

  await step('A runtime in memory predicts, and answers no call after it was closed', async () => {
    s = await Sightline.open({ base: RUNTIME, workers: 2 });
    same([s.store, s.owner], ['memory', true], 'what is open');
    const r = await call('POST', `/v2/models/${general}/outputs`, {
      inputs: ['36-glacier-and-rock.jpg', '35-slice-of-pizza.jpg'].map((n) => ({
        data: { image: { base64: base64(n) } },
      })),
    });
    same(r.status.code, 10000, 'status');
    const names = r.outputs.map((o) => o.data.concepts.slice(0, 6).map((c) => c.name));
    check(names[1].includes('pizza') || names[1].includes('food'), `concepts are ${names[1]}`);
    const bad = await call('POST', `/v2/models/${general}/outputs`, {
      inputs: [{ data: { image: { base64: Buffer.from('no picture').toString('base64') } } }],
    });
    same(bad.outputs[0].status.code, 30101, 'status of what is no picture');
    same((await call('GET', '/v2/nothing')).http, 404, 'status of nothing');
    const publicApp = async (headers) =>
      (await (await s.fetch(`/v2/models/${general}`, { headers })).json()).model.app_id;
    same(await publicApp({}), null, 'app_id for a caller without a name');
    same(await publicApp({ 'X-Clarifai-Client': 'js:2.9.1' }), 'main', 'app_id for a client that names itself');
    await s.close();
    await s.fetch('/v2/models').then(
      () => check(false, 'it still answers'),
      () => {},
    );
  });

  await step('A runtime with a folder has its inputs after it was opened again', async () => {
    s = await Sightline.open({ base: RUNTIME, store: { folder }, workers: 1 });
    same(s.store, 'folder', 'store');
    const inputs = ['26-green-roadster.jpg', '33-thistle.jpg'].map((id) => ({
      id,
      data: { image: { base64: base64(id) } },
    }));
    same((await call('POST', '/v2/inputs', { inputs })).status.code, 10000, 'status');
    await ready(2);
    await s.close();
    s = await Sightline.open({ base: RUNTIME, store: { folder }, workers: 1 });
    await ready(2);
    const { input } = await call('GET', '/v2/inputs/33-thistle.jpg');
    const picture = new Uint8Array(await (await s.fetch(input.data.image.url)).arrayBuffer());
    same(Buffer.from(picture).toString('base64') === base64('33-thistle.jpg'), true, 'the picture');
    await s.close();
  });

  await step('The runtime does not open without its files or after an abort', async () => {
    await Sightline.open({ base: join(folder, 'none') }).then(
      () => check(false, 'it opened'),
      (e) => check(/ENOENT/.test(e.message), `it says ${e.message}`),
    );
    const stop = new AbortController();
    const opening = Sightline.open({ base: RUNTIME, signal: stop.signal });
    stop.abort();
    await opening.then(
      () => check(false, 'it opened'),
      (e) => same(e.name, 'AbortError', 'error'),
    );
  });
  rmSync(folder, { recursive: true });
});
