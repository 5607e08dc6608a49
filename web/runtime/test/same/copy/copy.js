// Tests a replica of an origin's application in pages. The replica joins, both sides write, the replica works without the origin, another
// tab takes it over, and the origin's deletion of the application erases it.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { check, same } from '../../pages/browser.js';

const { ORIGIN, ORIGIN_BINARY, ORIGIN_DATA, SAMPLES } = process.env;

/** Runs a command as the operator of the origin, and returns its JSON. */
const operate = (...args) =>
  JSON.parse(execFileSync(ORIGIN_BINARY, [...args, '--json', '--data', ORIGIN_DATA], { encoding: 'utf8' }) || 'null');

/** Yields the fields of an encoded message: the field number, and a number or bytes. */
function* fields(data) {
  let at = 0;
  const varint = () => {
    for (let v = 0n, shift = 0n; ; shift += 7n) {
      const b = data[at++];
      v |= BigInt(b & 127) << shift;
      if (b < 128) return Number(v);
    }
  };
  while (at < data.length) {
    const tag = varint();
    const value = varint();
    if (tag % 8 === 0) yield [tag >> 3, value];
    else {
      yield [tag >> 3, data.subarray(at, at + value)];
      at += value;
    }
  }
}

/** Waits until `condition` returns a true value, and returns it. It fails with `label` if this takes too long. */
async function until(condition, label) {
  for (const since = performance.now(); ; await new Promise((r) => setTimeout(r, 50))) {
    const found = await condition();
    if (found) return found;
    check(performance.now() - since < 60_000, `not within a minute: ${label}`);
  }
}

/** Runs the steps of the test. `server` serves the pages of `browser`, and forwards their calls to the origin. */
export async function copies(step, server, browser) {
  const app = operate('app', 'create', 'copied').app_id;
  const { key } = operate('key', 'create', '--scopes', 'All', '--app', app);
  let page;
  const call = (method, path, body) => page.evaluate(([m, p, b]) => call(m, p, b), [method, path, body]);
  const atOrigin = async (method, path, body) => {
    const headers = { Authorization: `Key ${key}` };
    const r = await fetch(ORIGIN + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    return { http: r.status, ...(await r.json()) };
  };
  const base64 = (name) => readFileSync(join(SAMPLES, name)).toString('base64');
  const status = () => page.evaluate(() => s.sync.status());
  const waitUntilSynced = () =>
    until(async () => {
      const s = await status();
      return s.phase === 'current' && s.queued + s.sent === 0 && s.cursor === s.head && s;
    }, 'the copy and its origin have the same');
  const waitUntilAnalysed = (ask, n) =>
    until(async () => {
      const { inputs } = await ask('GET', '/v2/inputs?per_page=1000');
      return inputs.filter((i) => i.status.code === 30000).length === n;
    }, `${n} inputs are analysed`);
  /** Runs in the page: opens the replica with the credential `authorization`. */
  const openCopy = ([app, authorization, options]) => {
    globalThis.credentialCalls = 0;
    globalThis.statuses = [];
    const credential = async () => {
      credentialCalls++;
      return authorization;
    };
    return open({ workers: 1, copy: { origin: '', app, credential, name: 'a page' }, ...options }).then(
      async (opened) => {
        s.sync.onchange = (status) => statuses.push(status);
        return opened;
      },
    );
  };
  const openInPage = () => page.evaluate(openCopy, [app, `Key ${key}`]);
  /** Returns the digest of the origin's state, and its log entry. */
  const originDigest = async () => {
    const r = await fetch(`${ORIGIN}/v2/sync/digest?app=${app}`, {
      headers: { Authorization: `Key ${key}`, Accept: 'application/vnd.sightline.sync', 'Sync-Protocol': '2' },
    });
    same(r.status, 200, 'status of the digest');
    const d = new Map(fields(new Uint8Array(await r.arrayBuffer()).subarray(1)));
    const hex = (n) => Buffer.from(d.get(n)).toString('hex');
    return { epoch: hex(1), seq: d.get(2), digest: hex(3) };
  };
  const agree = async () => {
    await waitUntilSynced();
    await until(async () => {
      const [local, remote] = [await page.evaluate(() => s.sync.digest()), await originDigest()];
      if (local.seq === remote.seq) same(local, remote, 'the digest of the copy');
      return local.seq === remote.seq; // if they differ, the replica has not received the latest entries yet
    }, 'the copy is at the entry that the origin is at');
  };

  await step('A page joins, and its replica equals the origin', async () => {
    const inputs = ['33-thistle.jpg', '27-red-sports-car.jpg'].map((id) => ({
      id,
      data: { image: { base64: base64(id) }, concepts: [{ id: 'flower', value: Number(id === '33-thistle.jpg') }] },
    }));
    same((await atOrigin('POST', '/v2/inputs', { inputs })).status.code, 10000, 'status');
    await waitUntilAnalysed(atOrigin, 2);
    page = await browser.page();
    const { store, owner, took } = await openInPage();
    same([store, owner], ['private', true], 'what is open');
    await agree();
    same((await call('GET', '/v2/inputs')).inputs.map((i) => i.id).sort(), inputs.map((i) => i.id).sort(), 'inputs');
    same(await page.evaluate(() => credentialCalls), 1, 'how often the page was asked for its credential');
    const { url } = (await call('GET', '/v2/inputs/33-thistle.jpg')).input.data.image;
    const bytes = await page.evaluate(
      async (url) => Array.from(new Uint8Array(await (await s.fetch(url)).arrayBuffer())),
      url,
    );
    check(Buffer.from(bytes).equals(readFileSync(join(SAMPLES, '33-thistle.jpg'))), 'the picture is another');
    return `open after ${Math.round(took)} ms`;
  });

  const nearest = async (ask, name) => {
    const query = { ands: [{ output: { input: { data: { image: { base64: base64(name) } } } } }] };
    return (await ask('POST', '/v2/searches', { query })).hits.map((h) => h.input.id);
  };

  await step('Page and origin get the writes of each other', async () => {
    await atOrigin('PATCH', '/v2/inputs', {
      action: 'merge',
      inputs: [{ id: '33-thistle.jpg', data: { metadata: { from: 'origin' } } }],
    });
    const id = '26-green-roadster.jpg';
    const data = { image: { base64: base64(id) }, concepts: [{ id: 'car', value: 1 }] };
    same((await call('POST', '/v2/inputs', { inputs: [{ id, data }] })).status.code, 10000, 'status');
    await waitUntilAnalysed(call, 3);
    await waitUntilSynced();
    await waitUntilAnalysed(atOrigin, 3);
    await agree();
    same((await call('GET', '/v2/inputs/33-thistle.jpg')).input.data.metadata, { from: 'origin' }, 'metadata here');
    same((await nearest(call, id)).slice(0, 2), (await nearest(atOrigin, id)).slice(0, 2), 'the nearest');
    const picture = await fetch(
      `${ORIGIN}${new URL((await atOrigin('GET', `/v2/inputs/${id}`)).input.data.image.url).pathname}`,
    );
    same(Buffer.from(await picture.arrayBuffer()).equals(readFileSync(join(SAMPLES, id))), true, 'the picture there');
  });

  await step('Without a network, the page writes and trains, and has everything after a reload', async () => {
    await page.evaluate(() => registerServiceWorker({ scope: '/', answer: '/local/', shell: '/shell.json' }));
    server.leave();
    await until(async () => (await status()).phase === 'connecting', 'the page knows that it is alone');
    const id = '32-purple-thistles.jpg';
    const data = { image: { base64: base64(id) }, concepts: [{ id: 'flower', value: 1 }] };
    same((await call('POST', '/v2/inputs', { inputs: [{ id, data }] })).status.code, 10000, 'adding');
    const labels = { concepts: [{ id: 'flower', value: 0 }] };
    const patch = { action: 'merge', inputs: [{ id: '26-green-roadster.jpg', data: labels }] };
    same((await call('PATCH', '/v2/inputs', patch)).status.code, 10000, 'labelling');
    same((await call('DELETE', '/v2/inputs/27-red-sports-car.jpg')).status.code, 10000, 'deleting');
    await waitUntilAnalysed(call, 3);
    const model = { id: 'mine', output_info: { data: { concepts: [{ id: 'flower' }] } } };
    same((await call('POST', '/v2/models', { model })).status.code, 10000, 'making a model');
    same((await call('POST', '/v2/models/mine/versions')).status.code, 10000, 'training');
    const version = async (ask) => (await ask('GET', '/v2/models/mine/output_info')).model.model_version;
    await until(async () => (await version(call)).status.code === 21100, 'the model is trained');
    const trained = (await version(call)).id;
    const queuedCount = (await status()).queued;
    check(queuedCount >= 5, `${queuedCount} operations wait`);
    same((await status()).sent, 0, 'operations that the origin has');

    await page.close();
    page = await browser.page(); // the service worker serves the stored page: the origin does not answer
    await openInPage();
    same((await status()).queued, queuedCount, 'operations that wait after a reload');
    same((await version(call)).id, trained, 'the version after a reload');

    server.back();
    await agree();
    await until(async () => (await version(atOrigin)).id === trained, 'the origin has the version');
    same((await version(atOrigin)).status.code, 21100, 'the status of the version at the origin');
    await waitUntilAnalysed(atOrigin, 3);
    const ids = (await atOrigin('GET', '/v2/inputs')).inputs.map((i) => i.id).sort();
    same(ids, ['26-green-roadster.jpg', '32-purple-thistles.jpg', '33-thistle.jpg'], 'inputs at the origin');
    const ask = { inputs: [{ data: { image: { base64: base64('33-thistle.jpg') } } }] };
    const outputs = await Promise.all([call, atOrigin].map((f) => f('POST', '/v2/models/mine/outputs', ask)));
    same(outputs[0].outputs[0].data, outputs[1].outputs[0].data, 'what the version says here');
    return `${queuedCount} operations`;
  });

  await step('The page stays offline as long as the person wants, and then reports a conflict', async () => {
    await page.evaluate(() => s.sync.offline(true));
    same((await status()).phase, 'unreachable', 'phase');
    same((await call('DELETE', '/v2/inputs/32-purple-thistles.jpg')).status.code, 10000, 'deleting');
    const patch = { action: 'merge', inputs: [{ id: '33-thistle.jpg', data: { concepts: [{ id: 'late' }] } }] };
    const headers = await page.evaluate(async (body) => {
      const r = await s.fetch('/v2/inputs', { method: 'PATCH', body });
      return ['Durability', 'Operations'].map((name) => r.headers.get(`X-Sightline-${name}`));
    }, JSON.stringify(patch));
    const { queued } = await status();
    same([headers[0], queued], ['local', 2], 'where it is durable, and operations that wait');
    check(/^[0-9a-f]{16}:\d+-\d+$/.test(headers[1]), `its operations are ${headers[1]}`);
    same((await atOrigin('DELETE', '/v2/inputs/33-thistle.jpg')).status.code, 10000, 'deleting at the origin');
    same((await atOrigin('GET', '/v2/inputs/32-purple-thistles.jpg')).http, 200, 'status at the origin');
    await page.evaluate(() => s.sync.offline(false));
    await agree();
    same((await atOrigin('GET', '/v2/inputs/32-purple-thistles.jpg')).http, 404, 'status at the origin');
    same((await status()).conflicts, 1, 'conflicts');
    const [conflict] = (await call('GET', '/v2/sync/conflicts')).conflicts;
    same([conflict.verdict, conflict.input_id], ['gone', '33-thistle.jpg'], 'the conflict');
    await call('DELETE', `/v2/sync/conflicts/${conflict.id}`);
    await until(() => page.evaluate(() => statuses.at(-1)?.conflicts === 0), 'the page is told that it is over');
  });

  await step('When the tab with the replica is closed, another tab continues', async () => {
    const second = await browser.page();
    same((await second.evaluate(openCopy, [app, `Key ${key}`])).owner, false, 'owner');
    await page.evaluate(() => s.sync.offline(true));
    same((await call('DELETE', '/v2/inputs/26-green-roadster.jpg')).status.code, 10000, 'deleting');
    await until(() => second.evaluate(() => statuses.at(-1)?.queued === 1), 'the second tab is told');
    await page.close();
    page = second;
    await until(() => page.evaluate(() => s.owner), 'the second tab has the store');
    same([(await status()).phase, (await status()).queued], ['unreachable', 1], 'where it stands');
    await page.evaluate(() => s.sync.offline(false));
    await agree();
    same((await atOrigin('GET', '/v2/inputs/26-green-roadster.jpg')).http, 404, 'status at the origin');
  });

  await step('Operations of every kind give the replica the state of the origin', async () => {
    const change = (action, list) => ({ action, ...list });
    const input = (id, data) => ({ inputs: [{ id, data }] });
    const conceptData = (...ids) => ({ concepts: ids.map((id) => ({ id })) });
    const model = (...ids) => ({ models: [{ id: 'first', output_info: { data: conceptData(...ids) } }] });
    const pictures = ['01-canal-in-venice.jpg', '04-old-camera.jpg', '05-castle-gate.jpg'];
    const inputs = pictures.map((id, n) => ({
      id,
      data: {
        image: { base64: base64(id) },
        ...conceptData('boat'),
        metadata: { n, deep: { list: [n], text: 'ü' } },
        geo: { geo_point: { longitude: n, latitude: -1.5 } },
      },
    }));
    const [first, second, third] = pictures;
    const general = 'aaa03c23b3724a16a56b629203edc62c';
    const found = { input: { id: first, feedback_info: { event_type: 'annotation' } } };
    for (const [method, path, body] of [
      ['POST', 'inputs', { inputs }],
      ['PATCH', 'inputs', change('merge', input(first, { metadata: { n: null, deep: { list: [7] } } }))],
      [
        'PATCH',
        'inputs',
        change(
          'overwrite',
          input(first, { ...conceptData('lock'), geo: { geo_point: { longitude: 3, latitude: 4 } } }),
        ),
      ],
      ['PATCH', 'inputs', change('remove', input(second, { ...conceptData('boat'), metadata: { n: 1 } }))],
      [
        'PATCH',
        `inputs/${second}/outputs`,
        change('merge', { outputs: [{ data: { concepts: [{ id: 'boat', value: 0.25 }] } }] }),
      ],
      ['DELETE', `inputs/${third}`],
      ['POST', 'concepts', { concepts: [{ id: 'tower', name: 'Tower', language: 'de' }] }],
      ['PATCH', 'concepts', change('overwrite', { concepts: [{ id: 'tower', name: 'Turm' }] })],
      ['POST', 'models', { model: { id: 'first', output_info: { data: conceptData('boat', 'lock') } } }],
      ['PATCH', 'models', change('merge', model('tower'))],
      ['PATCH', 'models', change('remove', model('lock'))],
      [
        'PATCH',
        'models',
        { models: [{ id: 'first', name: 'One', output_info: { output_config: { closed_environment: true } } }] },
      ],
      ['POST', 'models', { model: { id: 'second' } }],
      ['DELETE', 'models/second'],
      [
        'POST',
        'workflows',
        { workflows: ['kept', 'gone'].map((id) => ({ id, nodes: [{ id: 'n', model: { id: 'first' } }] })) },
      ],
      ['DELETE', 'workflows/gone'],
      ['POST', `models/${general}/feedback`, found],
      ['DELETE', `models/mine/versions/${(await atOrigin('GET', '/v2/models/mine/versions')).model_versions[0].id}`],
    ]) {
      const { status } = await atOrigin(method, `/v2/${path}`, body);
      same(status.code, 10000, `${method} ${path}: ${JSON.stringify(status)}; the code`);
    }
    await agree();
    for (const path of ['inputs', 'models'])
      same((await atOrigin('DELETE', `/v2/${path}`, { delete_all: true })).status.code, 10000, `deleting all ${path}`);
    await agree();
  });

  await step('A damaged replica sends the operations that can be read, and gives no name twice', async () => {
    const id = '33-thistle.jpg';
    const inputs = [{ id, data: { image: { base64: base64(id) } } }];
    await atOrigin('POST', '/v2/inputs', { inputs });
    await waitUntilAnalysed(atOrigin, 1);
    await agree();
    /** Labels the picture with a concept here, and returns the writer of the operation. */
    const label = (concept) =>
      page.evaluate(
        async (body) =>
          (await s.fetch('/v2/inputs', { method: 'PATCH', body })).headers.get('X-Sightline-Operations').split(':')[0],
        JSON.stringify({ action: 'merge', inputs: [{ id, data: { concepts: [{ id: concept }] } }] }),
      );
    const labels = async (ask) =>
      (await ask('GET', `/v2/inputs/${id}`)).input.data.concepts
        .map((c) => c.id)
        .sort()
        .join();
    /** Returns the size of the file of records, which begins with the letters SLSTORE1. With `size`, it truncates the file. */
    const records = (size) =>
      page.evaluate(
        async ([app, size]) => {
          let folder = await navigator.storage.getDirectory();
          for (const name of ['sightline', `copy-${app}`]) folder = await folder.getDirectoryHandle(name);
          for (const name of ['0', '1']) {
            const handle = await folder.getFileHandle(name);
            const file = await handle.getFile();
            if ((await file.slice(0, 8).text()) !== 'SLSTORE1') continue;
            if (size === undefined) return file.size;
            const writable = await handle.createWritable({ keepExistingData: true });
            await writable.truncate(size);
            return writable.close();
          }
        },
        [app, size],
      );
    await page.evaluate(() => s.sync.offline(true));
    const writer = await label('first');
    const size = await records();
    await page.evaluate(() => s.sync.offline(false));
    await agree();
    same(await label('second'), writer, 'the writer of the next operation');
    await agree();
    await page.evaluate(() => s.sync.offline(true));
    await label('third');
    await page.evaluate(() => s.close());
    await records(size + 20);

    const second = await browser.page();
    const refusal = (in_) => in_.evaluate(openCopy, [app, `Key ${key}`]).catch((failure) => failure.message);
    for (const one of [page, second]) same((await refusal(one)).match(/were synced/g), ['were synced'], 'the refusal');
    const start = [app, `Key ${key}`, { salvage: true }];
    await page.evaluate(openCopy, start);
    const salvaged = await page.evaluate(() => s.salvaged);
    check(salvaged.records > 0 && salvaged.lost > 0 && !salvaged.lostPictures, `cut: ${JSON.stringify(salvaged)}`);
    same((await second.evaluate(openCopy, start)).owner, false, 'the owner of the second tab');
    same(await second.evaluate(() => s.salvaged), salvaged, 'the numbers in the second tab');
    await second.close();
    await agree();
    same(await labels(call), 'first,second', 'labels of the origin and those that were read');
    check((await label('fourth')) !== writer, 'the writer is the one from before the damage');
    await agree();
    same([await labels(call), await labels(atOrigin)], Array(2).fill('first,fourth,second'), 'labels in the end');
    same((await call('GET', '/v2/sync/conflicts')).conflicts, [], 'conflicts');
    return JSON.stringify(salvaged);
  });

  await step('A page of another site has a replica too', async () => {
    const other = await browser.page();
    const head = await other.evaluate(
      async ([origin, app, authorization]) => {
        await open({
          store: 'memory',
          workers: 1,
          copy: { origin, app, credential: async () => authorization, pictures: 'eager' },
        });
        for (;;) {
          const { phase, head } = await s.sync.status();
          if (phase === 'current') return head;
          await new Promise((r) => setTimeout(r, 50));
        }
      },
      [ORIGIN, app, `Key ${key}`],
    );
    same(head, (await status()).head, 'the end of the log');
    await other.close();
  });

  await step('The replica of a deleted application has no data left', async () => {
    operate('app', 'delete', app, '--yes');
    await until(async () => (await status()).phase === 'purged', 'the copy is told');
    const r = await call('GET', '/v2/inputs');
    check(r.status.code === 11101, `it answers ${JSON.stringify(r)}`);
    same(await page.evaluate(async () => (await s.fetch('/v2/inputs')).status), 410, 'status');
    const sizes = await page.evaluate(async (app) => {
      let folder = await navigator.storage.getDirectory();
      for (const name of ['sightline', `copy-${app}`]) folder = await folder.getDirectoryHandle(name);
      const files = await Promise.all(['0', '1', '2', '3'].map((name) => folder.getFileHandle(name)));
      return Promise.all(files.map(async (f) => (await f.getFile()).size));
    }, app);
    same(sizes, [0, 0, 0, 0], 'bytes that are left');
    await page.evaluate(() => s.close());
    const again = await openInPage().then(
      () => 'it opens',
      (failure) => failure.message,
    );
    check(/GoneError/.test(again), again);
  });
}
