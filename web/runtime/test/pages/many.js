// A page with many inputs: its memory, and the time to open the store and to search. Before the test, the same module creates the store in
// Node. The analyses in it are those of real pictures with small changes, so that no picture need be analysed twice.
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Browser, check, same, serve, way } from './browser.js';

const { RUNTIME, SAMPLES } = process.env;
const inputCount = Number(process.env.MANY ?? 300);
const slack = process.env.STRICT ? 1 : process.env.TIMED ? 8 : Number.POSITIVE_INFINITY; // see speed.js
const of = (name) => import(pathToFileURL(join(RUNTIME, name)).href);
const { Engine } = await of('engine.js');
const { Guest, compile, system } = await of('guest.js');
const { load } = await of('load.js');
const { Reader, Writer } = await of('envelope.js');
const { decodeStepResult, encodeJob, encodeQuestion, encodeStep } = await of('messages.js');
const { FolderFiles, inFolder } = await of('nodefiles.js');
const { Pool } = await of('pool.js');

let seed = 1;
const random = () => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return seed / 2 ** 32;
};

/** Returns an embedding that is similar to another, quantised by the same rule as in the core. */
function similar(embedding) {
  const q = new Int16Array(embedding.slice(0, 512).buffer);
  const e = Array.from(q, (v) => v + (random() + random() - 1) * 24_000);
  const max = Math.max(...e.map(Math.abs));
  const quantised = Int16Array.from(e, (v) => Math.sign(v) * Math.round((Math.abs(v) / max) * 32767));
  const sum = quantised.reduce((n, v) => n + v * v, 0);
  const bytes = new Uint8Array(516);
  bytes.set(new Uint8Array(quantised.buffer));
  new DataView(bytes.buffer).setFloat32(512, 1 / Math.sqrt(sum), true);
  return bytes;
}

/** Copies a message, and replaces each field with this number by the result of `to` for its bytes. */
function change(message, number, to) {
  const w = Writer.envelope();
  for (const r = Reader.envelope(message); r.next(); )
    if (r.number === number) w.message(number, to(r.raw()));
    else w.append(r.encodedField());
  return w.finish();
}

/** Creates a store in a folder, with MANY inputs. */
async function fill(folder) {
  const loaded = await load(inFolder(pathToFileURL(`${RUNTIME}/`)), () => {});
  const modules = await compile(loaded.guest, loaded.kernels);
  const files = new FolderFiles(folder);
  const services = { ...system, bundle: (name) => loaded.bundles.get(name), files };
  const settings = {
    bundles: [...loaded.bundles.keys()],
    openDoor: true,
    checked: true,
    publicUrl: 'http://page.test',
  };
  const analyser = await Guest.open(modules, services, { ...settings, role: 'analyser', store: 'memory' });
  const pictures = readdirSync(SAMPLES)
    .filter((n) => n.endsWith('.jpg'))
    .map((n) => readFileSync(join(SAMPLES, n)));
  const analyses = new Map(); // want and place → result
  let n = 0;
  const analyse = async (job) => {
    const want = { value: 0, data: undefined };
    for (const r = Reader.envelope(job); r.next(); ) {
      if (r.number === 5) want.value = r.uint();
      if (r.number === 2) want.data = r.raw();
    }
    const place = n++ % pictures.length;
    const key = `${want.value} ${place}`;
    if (!analyses.has(key))
      analyses.set(key, analyser.call('analyse', encodeJob({ want: want.value, keep: true }, pictures[place])));
    return change(analyses.get(key), 3, (analysis) => change(analysis, 2, similar));
  };
  const pool = new Pool({
    make: async () => ({ analyse, close: () => {} }),
    size: 1,
    minSize: 1,
    timeout: 60_000,
    idle: 1000,
    log: console.log,
  });
  const open = () => Guest.open(modules, services, { ...settings, role: 'engine', store: 'files' });
  const engine = await Engine.open({ open, pool, films: { close: () => {} }, log: (line) => console.log(line) });
  const call = async (method, path, body) => {
    const answer = await engine.serve({
      method,
      path,
      ...(body && { body: new TextEncoder().encode(JSON.stringify(body)) }),
    });
    return JSON.parse(new TextDecoder().decode(answer.body));
  };
  for (let at = 0; at < inputCount; at += 100) {
    const inputs = Array.from({ length: Math.min(100, inputCount - at) }, (_, i) => {
      const own = Buffer.alloc(16);
      own.writeUInt32LE(at + i); // so that each picture has other bytes
      const image = {
        base64: Buffer.concat([pictures[(at + i) % pictures.length].subarray(0, 8_000), own]).toString('base64'),
      };
      return { id: `i${at + i}`, data: { image, metadata: { n: at + i } } };
    });
    const r = await call('POST', '/v2/inputs', { inputs });
    check(r.status.code === 10000, JSON.stringify(r.status));
    for (;;) {
      const { counts } = await call('GET', '/v2/inputs/status');
      if (counts.processed === at + inputs.length) break;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
  await engine.close();
  // A page runs these steps between its calls. Here the calls leave no time for them, so they run at the end.
  const last = await open();
  while (decodeStepResult(last.call('step', encodeStep(0, []))).more);
  last.call('ask', encodeQuestion('close'));
  files.close();
}

/** The memory of the browser's largest page process, in bytes: its private memory and its share of shared memory. */
function largest(profile) {
  const processes = readdirSync('/proc')
    .filter((n) => /^\d+$/.test(n))
    .flatMap((pid) => {
      try {
        const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
        const parent = Number(
          readFileSync(`/proc/${pid}/stat`, 'utf8')
            .replace(/^.*\) \S /, '')
            .split(' ')[0],
        );
        const pss =
          Number(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8').match(/^Pss: +(\d+) kB/m)?.[1] ?? 0) * 1024;
        return [{ pid: Number(pid), parent, words, pss }];
      } catch {
        return []; // it has ended
      }
    });
  const pids = new Set(processes.filter((p) => p.words.includes(`--user-data-dir=${profile}`)).map((p) => p.pid));
  for (let size = 0; size !== pids.size; ) {
    size = pids.size;
    for (const p of processes) if (pids.has(p.parent)) pids.add(p.pid);
  }
  return Math.max(...processes.filter((p) => pids.has(p.pid) && p.words.includes('--type=renderer')).map((p) => p.pss));
}

way(async (step) => {
  const givenStore = process.env.STORE; // a store of an earlier run, to measure it again
  const folder = givenStore ?? mkdtempSync(join(tmpdir(), 'runtime-many-'));
  const server = await serve({ extraFolder: folder });
  const browser = await Browser.start(server.origin);

  await step(`The script makes a store with ${inputCount} inputs`, async () => {
    if (!givenStore) await fill(folder);
    return readdirSync(folder)
      .map((name) => `${(statSync(join(folder, name)).size / 1e6).toFixed(1)} MB`)
      .join(', ');
  });

  let page = await browser.page();
  await step('The files of the inputs are copied into the store of a page', () =>
    page.evaluate(async () => {
      let to = await navigator.storage.getDirectory();
      for (const name of ['sightline', 'main']) to = await to.getDirectoryHandle(name, { create: true });
      for (const name of '0123') {
        const file = await (await to.getFileHandle(name, { create: true })).createWritable();
        await (await fetch(`/lent/${name}`)).body.pipeTo(file);
      }
    }),
  );
  await page.evaluate(() => open());
  await page.close();

  await step('The page opens its store in time', async () => {
    const times = [];
    for (let round = 0; round < 3; round++) {
      page = await browser.page();
      times.push((await page.evaluate(() => open())).took);
      if (round < 2) await page.close();
    }
    const least = Math.min(...times);
    check(least <= 3000 * slack, `${least} ms, the goal is 3000`);
    return `${Math.round(least)} ms, the goal is 3000`;
  });

  await step('The page has all inputs and their pictures', async () => {
    const [total, pictures] = await page.evaluate(async (inputCount) => {
      const { counts } = await call('GET', '/v2/inputs/status');
      let pictures = 0;
      for (const n of [0, inputCount >> 1, inputCount - 1]) {
        const { input } = await call('GET', `/v2/inputs/i${n}`);
        if (input.data.metadata.n !== n) throw new Error(JSON.stringify(input));
        pictures += (await (await s.fetch(new URL(input.data.image.url).pathname)).arrayBuffer()).byteLength;
      }
      return [counts.processed, pictures];
    }, inputCount);
    same([total, pictures], [inputCount, 3 * 8016], 'inputs, and bytes of three pictures');
  });

  await step('The page finds similar pictures in time', async () => {
    const [first, ...times] = await page.evaluate(async (inputCount) => {
      const times = [];
      for (let round = 0; round < 60; round++) {
        const id = `i${(round * 7919) % inputCount}`;
        const since = performance.now();
        const query = { ands: [{ output: { input: { id } } }] };
        const r = await call('POST', '/v2/searches', { query });
        times.push(performance.now() - since);
        if (r.hits?.[0]?.input.id !== id) throw new Error(`${id}: ${JSON.stringify(r).slice(0, 300)}`);
      }
      return times;
    }, inputCount);
    const middle = times.sort((a, b) => a - b)[times.length >> 1];
    check(middle <= 20 * slack, `${middle} ms, the goal is 20`);
    return `${middle.toFixed(1)} ms in the middle, ${times[0].toFixed(1)} at least, ${first.toFixed(1)} the first; the goal is 20`;
  });

  await step('The page needs at most 500 MB of memory', async () => {
    await page.evaluate(async () => {
      const base64 = await picture('09-sea-turtle.jpg');
      await call('POST', '/v2/models/aaa03c23b3724a16a56b629203edc62c/outputs', {
        inputs: [{ data: { image: { base64 } } }],
      });
    });
    const { heap, system } = await page.evaluate(() => s.memory());
    const tabBytes = largest(browser.profile);
    check(tabBytes <= 500e6, `${Math.round(tabBytes / 1e6)} MB, the goal is 500`);
    return `${Math.round(tabBytes / 1e6)} MB of the tab with its workers, ${Math.round(system / 1e6)} of the engine, ${Math.round(heap / 1e6)} of them in use; the goal is 500`;
  });

  await browser.close();
  browser.forget();
  server.close();
  if (!givenStore) rmSync(folder, { recursive: true });
});
