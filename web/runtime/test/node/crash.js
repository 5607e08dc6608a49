// Simulates a machine that stops at any operation on the files. Operations without a later sync are lost in part or completely. The store
// must open afterwards. It must have every acknowledged write, and no data that was never written.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { check, same, way } from '../pages/browser.js';

const { RUNTIME } = process.env;
const rounds = Number(process.env.ROUNDS ?? 20);
const first = Number(process.env.SEED ?? 1);
const of = (name) => import(pathToFileURL(join(RUNTIME, name)).href);
const { Engine } = await of('engine.js');
const { MemoryFiles } = await of('files.js');
const { Guest, compile, system } = await of('guest.js');
const { load } = await of('load.js');
const { inFolder } = await of('nodefiles.js');
const { Pool } = await of('pool.js');

function generator(seed) {
  let state = seed;
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

/** Files in memory that remember every operation. */
class Disk extends MemoryFiles {
  operations = []; // {file, write: [offset, bytes]} or {file, truncate: size} or {file, sync: true}

  write(file, offset, p) {
    super.write(file, offset, p);
    this.operations.push({ file, write: [offset, p.slice()] });
  }

  truncate(file, size) {
    super.truncate(file, size);
    this.operations.push({ file, truncate: size });
  }

  sync(file) {
    super.sync(file);
    this.operations.push({ file, sync: true });
  }

  /** Returns one possible state of the files after the machine has stopped behind the first n operations. */
  filesAfterStop(n, random) {
    const files = new MemoryFiles();
    const synced = [0, 1, 2, 3].map((file) =>
      this.operations.slice(0, n).findLastIndex((d) => d.file === file && d.sync),
    );
    const survival = random(3); // unsynced operations that survive: 0: all; 1: after the first lost one, parts of writes; 2: none after it
    const lostFiles = new Set();
    for (const [at, d] of this.operations.slice(0, n).entries()) {
      const isSynced = at < synced[d.file];
      if (!isSynced && (lostFiles.has(d.file) || (survival > 0 && random(3) === 0))) {
        lostFiles.add(d.file);
        if (d.write && survival === 1) {
          const [offset, p] = d.write;
          if (offset <= files.size(d.file)) files.write(d.file, offset, p.subarray(0, random(p.length + 1)));
        }
        continue;
      }
      if (d.write) files.write(d.file, ...d.write);
      if (d.truncate !== undefined) files.truncate(d.file, d.truncate);
    }
    return files;
  }
}

way(async (step) => {
  const loaded = await load(inFolder(pathToFileURL(`${RUNTIME}/`)), () => {});
  const modules = await compile(loaded.guest, loaded.kernels);
  const settings = { bundles: [...loaded.bundles.keys()], openDoor: true, checked: true };
  const services = { ...system, log: () => {}, bundle: (name) => loaded.bundles.get(name) };
  const analyser = await Guest.open(modules, services, { ...settings, role: 'analyser', store: 'memory' });
  const start = (files) =>
    Engine.open({
      open: () => Guest.open(modules, { ...services, files }, { ...settings, role: 'engine', store: 'files' }),
      pool: new Pool({
        make: async () => ({ analyse: async (job) => analyser.call('analyse', job), close: () => {} }),
        size: 1,
        minSize: 1,
        timeout: 60_000,
        idle: 1000,
        log: () => {},
      }),
      films: { close: () => {} },
      log: () => {},
    });
  const calling = (engine) => async (method, path, body) => {
    const data = body && new TextEncoder().encode(JSON.stringify(body));
    const answer = await engine.serve({
      method,
      path: path.split('?')[0],
      query: path.split('?')[1] ?? '',
      ...(data && { body: data }),
    });
    return JSON.parse(new TextDecoder().decode(answer.body));
  };

  const disk = new Disk();
  const reports = []; // {id, state, at}: a call about an input or its acknowledgement, and the number of file operations before it
  await step('The engine adds and deletes inputs on the recorded disk', async () => {
    const engine = await start(disk);
    const call = calling(engine);
    const report = (id, state) => reports.push({ id, state, at: disk.operations.length });
    const random = generator(first);
    for (let n = 0; n < 60; n++) {
      const id = `i${n}`;
      report(id, 'asked');
      const r = await call('POST', '/v2/inputs', {
        inputs: [{ id, data: { image: { base64: bitmap(n) }, metadata: { n } } }],
      });
      same(r.status.code, 10000, 'status');
      report(id, 'added');
      if (random(4) === 0) {
        const deletedId = `i${random(n + 1)}`;
        report(deletedId, 'deleting');
        if ((await call('DELETE', `/v2/inputs/${deletedId}`)).status.code === 10000) report(deletedId, 'deleted');
      }
      for (let count = random(4); count > 0; count--) await new Promise((r) => setTimeout(r)); // lets analyses continue
    }
    await engine.close();
    return `${disk.operations.length} operations, ${disk.operations.filter((d) => d.sync).length} of them syncs`;
  });

  await step(
    `The engine has every acknowledged input after ${rounds} stops, seeds ${first} to ${first + rounds - 1}`,
    async () => {
      for (let seed = first; seed < first + rounds; seed++) {
        const random = generator(seed);
        const n = random(disk.operations.length + 1);
        const files = disk.filesAfterStop(n, random);
        const engine = await start(files).catch((failure) =>
          check(false, `seed ${seed}: it does not open: ${failure}`),
        );
        const { inputs = [] } = await calling(engine)('GET', '/v2/inputs?per_page=1000');
        const found = new Map(inputs.map((i) => [i.id, i]));
        const last = new Map();
        for (const { id, state, at } of reports) if (at <= n) last.set(id, state);
        for (const [id, state] of last) {
          if (state === 'added') check(found.has(id), `seed ${seed}: ${id} was acknowledged and is gone`);
          if (state === 'deleted') check(!found.has(id), `seed ${seed}: ${id} was deleted and is there`);
        }
        for (const [id, input] of found) {
          check(last.has(id), `seed ${seed}: nobody asked for ${id}`);
          const picture = await engine.serve({
            method: 'GET',
            path: new URL(input.data.image.url, 'http://x').pathname,
          });
          check(
            Buffer.from(picture.body).toString('base64') === bitmap(Number(id.slice(1))),
            `seed ${seed}: the picture of ${id} is another`,
          );
        }
        await engine.close();
      }
    },
  );
});

/** A picture in a format that needs no library: a BMP of 8 by 8. */
function bitmap(n) {
  const b = Buffer.alloc(54 + 8 * 24);
  b.write('BM');
  b.writeUInt32LE(b.length, 2);
  b.writeUInt32LE(54, 10);
  b.writeUInt32LE(40, 14);
  b.writeInt32LE(8, 18);
  b.writeInt32LE(8, 22);
  b.writeUInt16LE(1, 26);
  b.writeUInt16LE(24, 28);
  for (let at = 54; at < b.length; at++) b[at] = (n * 31 + at * (n % 7)) & 0xff;
  return b.toString('base64');
}
