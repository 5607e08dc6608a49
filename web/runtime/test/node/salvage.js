// Damages the files of a store at random places. The runtime reports the damage, and opens with `salvage` what can be read: a prefix of the
// inputs in the order in which they were added, with the right pictures or none. It then works and opens again.
import { cpSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { check, same, way } from '../pages/browser.js';

const { RUNTIME, SAMPLES } = process.env;
const rounds = Number(process.env.ROUNDS ?? 6);
const { Sightline } = await import(pathToFileURL(join(RUNTIME, 'node.js')).href);
const added = ['04-old-camera', '09-sea-turtle', '26-green-roadster', '27-red-sports-car', '32-purple-thistles'];
const file = (name) => readFileSync(join(SAMPLES, `${name}.jpg`));
let seed = Number(process.env.SEED ?? 1);
const random = (n) => {
  seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
  return (seed >>> 8) % n;
};

way(async (step) => {
  const root = mkdtempSync(join(tmpdir(), 'runtime-salvage-'));
  const folder = join(root, 'store');
  let s;
  const open = async (folder, options) => {
    s = await Sightline.open({ base: RUNTIME, store: { folder }, workers: 1, ...options });
  };
  const refusal = (folder, options) =>
    open(folder, options).then(
      () => undefined,
      (failure) => failure.name,
    );
  const call = async (method, path, body) => {
    const r = await s.fetch(path, { method, ...(body && { body: JSON.stringify(body) }) });
    return { http: r.status, ...(await r.json()) };
  };
  const add = async (id) => {
    const image = { base64: file(id).toString('base64') };
    const r = await call('POST', '/v2/inputs', { inputs: [{ id, data: { image, metadata: { id } } }] });
    same(r.status.code, 10000, 'status');
    while ((await call('GET', '/v2/inputs/status')).counts.to_process > 0) await new Promise((r) => setTimeout(r, 20));
  };
  const least = { 0: 0, 2: 0 }; // bytes of the files with the first input

  await step('The runtime stores pictures in a folder', async () => {
    await open(folder);
    for (const id of added) {
      await add(id);
      for (const n of [0, 2]) least[n] ||= statSync(join(folder, String(n))).size;
    }
    same(s.salvaged, undefined, 'the result of a salvage');
    await s.close();
  });

  await step(`With a salvage, a damaged store opens with the inputs before the damage, ${rounds} times`, async () => {
    const counts = [];
    for (let round = 0; round < rounds; round++) {
      const damaged = join(root, `damaged-${round}`);
      cpSync(folder, damaged, { recursive: true });
      const n = round % 3 === 2 ? 2 : 0; // the records, or the pictures
      const path = join(damaged, String(n));
      const at = least[n] + random(statSync(path).size - least[n]);
      if (n === 2 || round % 2) truncateSync(path, at);
      else {
        const data = readFileSync(path);
        data.fill(0, at, at + 5000);
        writeFileSync(path, data);
      }
      const strict = await refusal(damaged);
      if (strict === undefined)
        await s.close(); // the damage is in a value alone, which opening does not read
      else same(strict, 'DamagedError', `the refusal of damage at byte ${at} of file ${n}`);
      await open(damaged, { salvage: true });
      const { records, lost, lostPictures } = s.salvaged;
      check(records > 0, 'no record was read');
      if (strict) check(n ? lostPictures > 0 && !lost : lost > 0, `cut: ${JSON.stringify(s.salvaged)}`);
      const { inputs } = await call('GET', '/v2/inputs?per_page=100');
      const found = new Map(inputs.map((i) => [i.id, i]));
      const ids = added.filter((id) => found.has(id));
      same(ids, added.slice(0, Math.max(1, ids.length)), 'the inputs before the damage');
      if (n) same(ids, added, 'the inputs of a store without damage');
      for (const [id, { data }] of found) {
        same(data.metadata, { id }, `the metadata of ${id}`);
        const picture = await s.fetch(new URL(data.image.url, 'http://x').pathname);
        if (picture.ok) check(file(id).equals(Buffer.from(await picture.arrayBuffer())), `another picture of ${id}`);
        else check(n === 2, `no picture of ${id}: ${picture.status}`);
      }
      await add('33-thistle');
      await s.close();
      await open(damaged);
      same(
        (await call('GET', '/v2/inputs?per_page=100')).inputs.length,
        ids.length + 1,
        'inputs after a further start',
      );
      await s.close();
      counts.push(ids.length);
    }
    return `inputs ${counts}`;
  });

  await step('A store of which nothing can be read does not open, and its files stay as they are', async () => {
    const damaged = join(root, 'nothing');
    cpSync(folder, damaged, { recursive: true });
    const path = join(damaged, '0');
    const data = readFileSync(path);
    data.fill(0, 64, 300);
    writeFileSync(path, data);
    same(await refusal(damaged), 'DamagedError', 'the refusal');
    same(await refusal(damaged, { salvage: true }), 'DamagedError', 'the refusal of a salvage');
    check(readFileSync(path).equals(data), 'the files were changed');
  });
  rmSync(root, { recursive: true });
});
