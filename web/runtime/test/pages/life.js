// Uses the runtime as a page does, from the first visit to a visit without a network.
import { Browser, check, same, serve, way } from './browser.js';

const general = 'aaa03c23b3724a16a56b629203edc62c';

way(async (step) => {
  const server = await serve();
  const browser = await Browser.start(server.origin, { console: process.env.LOUD ? console.log : undefined });
  let page;
  const call = (method, path, body) => page.evaluate(([m, p, b]) => call(m, p, b), [method, path, body]);

  await step('The first visit loads all files and reports its progress', async () => {
    page = await browser.page();
    const { stages, store, owner, took } = await page.evaluate(() => open());
    same([store, owner], ['private', true], 'what is open');
    same([...new Set(stages.map((p) => p.stage))], ['load', 'start', 'ready'], 'stages');
    const network = stages.filter((p) => p.file?.endsWith('network.plan'));
    check(network.length > 0 && network.at(-1).loaded === network.at(-1).total, 'the network does not come to its end');
    const loads = stages.filter((p) => p.stage === 'load');
    check(
      loads.every((p, i) => i === 0 || p.allLoaded > loads[i - 1].allLoaded),
      'it goes back',
    );
    same(loads.at(-1).allLoaded, loads.at(-1).allTotal, 'all bytes');
    return `${Math.round(took)} ms, ${(loads.at(-1).allTotal / 1e6).toFixed(1)} MB`;
  });

  await step('The page recognises a picture', async () => {
    const r = await page.evaluate(async (model) => {
      const base64 = await picture('09-sea-turtle.jpg');
      return call('POST', `/v2/models/${model}/outputs`, { inputs: [{ data: { image: { base64 } } }] });
    }, general);
    same(r.status.code, 10000, 'status');
    const names = r.outputs[0].data.concepts.slice(0, 5).map((c) => c.name);
    check(names.includes('turtle'), `concepts are ${names}`);
  });

  await step('The page recognises a picture at a URL', async () => {
    const url = `${server.origin}/samples/38-horses-in-salzburg.jpg`;
    const r = await call('POST', `/v2/models/${general}/outputs`, { inputs: [{ data: { image: { url } } }] });
    same(r.status.code, 10000, 'status');
    const names = r.outputs[0].data.concepts.slice(0, 8).map((c) => c.name);
    check(names.includes('horse'), `concepts are ${names}`);
    const bad = await call('POST', `/v2/models/${general}/outputs`, {
      inputs: [{ data: { image: { url: `${server.origin}/samples/none.jpg` } } }],
    });
    same(bad.outputs[0].status.code, 30002, 'status of an address without a picture');
  });

  const examples = {
    car: ['26-green-roadster.jpg', '27-red-sports-car.jpg'],
    flower: ['32-purple-thistles.jpg', '33-thistle.jpg'],
  };

  await step('The page trains two concepts', async () => {
    const added = await page.evaluate(async (examples) => {
      const inputs = [];
      for (const [id, names] of Object.entries(examples))
        for (const name of names)
          inputs.push({
            id: name,
            data: {
              image: { base64: await picture(name) },
              concepts: Object.keys(examples).map((c) => ({ id: c, value: Number(c === id) })),
            },
          });
      return call('POST', '/v2/inputs', { inputs });
    }, examples);
    same(added.status.code, 10000, 'status');
    await page.evaluate(ready, 4);
    const created = await call('POST', '/v2/models', {
      model: { id: 'mine', output_info: { data: { concepts: [{ id: 'car' }, { id: 'flower' }] } } },
    });
    same(created.status.code, 10000, 'status');
    const version = await call('POST', '/v2/models/mine/versions');
    same(version.status.code, 10000, 'status');
    await page.evaluate(waitForTraining, 'mine');
  });

  const predict = (names) =>
    page.evaluate(async (names) => {
      const inputs = await Promise.all(names.map(async (n) => ({ data: { image: { base64: await picture(n) } } })));
      const r = await call('POST', '/v2/models/mine/outputs', { inputs });
      return r.outputs.map((o) => o.data.concepts[0].id);
    }, names);

  await step('The trained model tells the concepts apart', async () => {
    same(await predict(['27-red-sports-car.jpg', '32-purple-thistles.jpg']), ['car', 'flower'], 'concepts');
  });

  const similar = (name) =>
    page.evaluate(async (name) => {
      const query = { ands: [{ output: { input: { data: { image: { base64: await picture(name) } } } } }] };
      return (await call('POST', '/v2/searches', { query })).hits.map((h) => h.input.id);
    }, name);

  await step('The page finds similar pictures', async () => {
    const found = await similar('27-red-sports-car.jpg');
    same(found.length, 4, 'hits');
    same(found.slice(0, 2).sort(), examples.car, 'the nearest two');
  });

  await step('The runtime serves hosted pictures and their thumbnails', async () => {
    const r = await call('GET', '/v2/inputs/33-thistle.jpg');
    const { url } = r.input.data.image;
    check(url.startsWith(`${server.origin}/hosted/`), `the address is ${url}`);
    const results = await page.evaluate(async (url) => {
      const [plain, thumb, none] = await Promise.all(
        [url, `${url}/thumbnail`, `${url.slice(0, -32)}${'0'.repeat(32)}`].map((u) => s.fetch(u)),
      );
      const bytes = new Uint8Array(await plain.arrayBuffer());
      const original = new Uint8Array(await (await fetch('/samples/33-thistle.jpg')).arrayBuffer());
      const image = await createImageBitmap(await thumb.blob());
      return [
        plain.headers.get('Content-Type'),
        bytes.every((b, i) => b === original[i]),
        image.width > 0,
        none.status,
      ];
    }, url);
    same(results, ['image/jpeg', true, true, 404], 'what is hosted');
  });

  await step('An aborted call is rejected', async () => {
    const errors = await page.evaluate(async (model) => {
      const stop = new AbortController();
      const body = JSON.stringify({ inputs: [{ data: { image: { base64: await picture('09-sea-turtle.jpg') } } }] });
      const abortedCall = s.fetch(`/v2/models/${model}/outputs`, { method: 'POST', body, signal: stop.signal });
      stop.abort();
      const lateCall = s.fetch('/v2/models', { signal: stop.signal });
      const otherPath = s.fetch('/elsewhere');
      return Promise.all([abortedCall, lateCall, otherPath].map((p) => p.catch((e) => e.name)));
    }, general);
    same(errors, ['AbortError', 'AbortError', 'TypeError'], 'what is thrown');
  });

  await step('After a reload the page has its data and requests only the manifest', async () => {
    server.requestCounts.clear();
    await page.reload();
    await page.evaluate(() => 0);
    await page.close();
    page = await browser.page();
    const { took, store } = await page.evaluate(() => open());
    same(store, 'private', 'store');
    const paths = [...server.requestCounts.keys()].filter((p) => !/\.js$|^\/$|favicon/.test(p));
    same(paths, ['/runtime/manifest.json'], 'files that were asked for');
    same(await predict(['26-green-roadster.jpg', '33-thistle.jpg']), ['car', 'flower'], 'concepts');
    same((await similar('33-thistle.jpg')).slice(0, 2).sort(), examples.flower, 'the nearest two');
    return `ready after ${Math.round(took)} ms`;
  });

  await step('A second tab calls the first, and has the data after the first was closed', async () => {
    const second = await browser.page();
    const { owner, store } = await second.evaluate(() => open());
    same([owner, store], [false, 'private'], 'the second tab');
    const count = () => second.evaluate(async () => (await call('GET', '/v2/inputs')).inputs.length);
    same(await count(), 4, 'inputs by way of the first');
    await page.close();
    same(await count(), 4, 'inputs of its own');
    same(await second.evaluate(() => s.owner), true, 'owner');
    page = second;
  });

  await step('A tab that cannot load its files reports that, and opens again when it can', async () => {
    const second = await browser.page();
    await second.evaluate(() => open());
    const ended = second.evaluate(
      () =>
        new Promise((resolve) => {
          s.onend = (error) => resolve(error.name);
        }),
    );
    await second.evaluate(() => caches.delete('sightline-runtime'));
    server.leave();
    await page.close();
    same(await ended, 'TypeError', 'why it has ended');
    const refused = () => call('GET', '/v2/inputs').catch((error) => error.name);
    same(await second.evaluate(refused), 'TypeError', 'a call after that');
    server.back();
    same((await second.evaluate(() => open())).owner, true, 'owner');
    same(await second.evaluate(async () => (await call('GET', '/v2/inputs')).inputs.length), 4, 'inputs');
    page = second;
  });

  await step('The service worker answers fetch', async () => {
    const results = await page.evaluate(async (general) => {
      await registerServiceWorker({ scope: '/', answer: '/local/', shell: '/shell.json' });
      if (!navigator.serviceWorker.controller)
        await new Promise((r) => navigator.serviceWorker.addEventListener('controllerchange', r, { once: true }));
      const plain = (...args) => fetch(...args);
      const list = await call('GET', '/local/v2/inputs', undefined, plain);
      const base64 = await picture('09-sea-turtle.jpg');
      const body = { inputs: [{ data: { image: { base64 } } }] };
      const [model] = (await call('GET', '/local/v2/models?per_page=1', undefined, plain)).models;
      const out = await call('POST', `/local/v2/models/${model.id}/outputs`, body, plain);
      const headers = { 'X-Clarifai-Client': 'js:2.9.1' };
      const named = (await (await fetch(`/local/v2/models/${general}`, { headers })).json()).model;
      return [list.inputs.length, out.status.code, (await fetch('/v2/inputs')).status, named.app_id];
    }, general);
    same(results, [4, 10000, 404, 'main'], 'answers');
  });

  await step('The service worker answers 503 while the runtime is closed', async () => {
    const status = await page.evaluate(async () => {
      await s.close();
      await s.fetch('/v2/inputs').then(
        () => {
          throw new Error('it still answers');
        },
        () => {},
      );
      return (await fetch('/local/v2/inputs')).status;
    });
    same(status, 503, 'status');
    const { owner } = await page.evaluate(() => open());
    same(owner, true, 'owner');
    same(await page.evaluate(async () => (await fetch('/local/v2/inputs')).status), 200, 'status');
  });

  await step('Without a network, the page starts from its cache', async () => {
    await page.close();
    server.leave();
    page = await browser.page();
    const { store } = await page.evaluate(() => open());
    same(store, 'private', 'store');
    const sample = page.evaluate(() => fetch('/samples/09-sea-turtle.jpg'));
    check(
      await sample.then(
        () => false,
        () => true,
      ),
      'there is a network',
    );
    same((await call('GET', '/v2/inputs')).inputs.length, 4, 'inputs');
    const names = await page.evaluate(async (model) => {
      const canvas = new OffscreenCanvas(300, 200);
      canvas.getContext('2d').fillRect(0, 0, 300, 100);
      const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: 'image/jpeg' })).arrayBuffer());
      const base64 = btoa(String.fromCharCode(...bytes));
      const r = await call('POST', `/v2/models/${model}/outputs`, { inputs: [{ data: { image: { base64 } } }] });
      return r.outputs[0].data.concepts.length;
    }, general);
    check(names > 0, 'no concepts');
    server.back();
  });

  await browser.close();
  browser.forget();
  server.close();
});

/** Runs in the page: waits until so many inputs are analysed. */
async function ready(n) {
  for (;;) {
    const { inputs } = await call('GET', '/v2/inputs?per_page=1000');
    if (inputs.filter((i) => i.status.code === 30000).length === n) return;
    await new Promise((r) => setTimeout(r, 20));
  }
}

/** Runs in the page: waits until a model is trained. */
async function waitForTraining(id) {
  for (;;) {
    const { model } = await call('GET', `/v2/models/${id}/output_info`);
    const { code } = model.model_version.status;
    if (code === 21100) return;
    if (code !== 21101 && code !== 21103) throw new Error(`the training says ${code}`);
    await new Promise((r) => setTimeout(r, 10));
  }
}
