// Tests that a page's private store still answers in a runtime that has another network.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { another } from '../another.js';
import { Browser, check, same, serve, way } from './browser.js';

way(async (step) => {
  const folder = mkdtempSync(join(tmpdir(), 'runtime-renewal-'));
  const server = await serve({ extraFolder: another(folder) });
  const browser = await Browser.start(server.origin);
  const names = ['26-green-roadster.jpg', '27-red-sports-car.jpg'];
  let page;
  const open = async (base) => {
    page = await browser.page();
    same(await page.evaluate(async (base) => (await open({ base })).store, base), 'private', 'store');
  };
  const close = async () => {
    await page.evaluate(() => s.close());
    await page.close();
  };
  const vehicles = () =>
    page.evaluate(async () => {
      const query = { ands: [{ output: { data: { concepts: [{ name: 'vehicle' }] } } }] };
      return (await call('POST', '/v2/searches', { query })).hits.map((h) => [h.input.id, h.score]);
    });
  const networks = () =>
    page.evaluate(async () => {
      let folder = await navigator.storage.getDirectory();
      for (const name of ['sightline', 'main']) folder = await folder.getDirectoryHandle(name);
      const networks = new Set();
      for await (const name of folder.keys()) for (const n of name.match(/^network-[^-]+/) ?? []) networks.add(n);
      return networks.size;
    });
  let before;

  await step('The page analyses pictures with a network', async () => {
    await open('/runtime/');
    await page.evaluate(async (names) => {
      const inputs = await Promise.all(
        names.map(async (id) => ({ id, data: { image: { base64: await picture(id) } } })),
      );
      await call('POST', '/v2/inputs', { inputs });
      while ((await call('GET', '/v2/inputs/status')).counts.processed < names.length)
        await new Promise((r) => setTimeout(r, 20));
    }, names);
    before = await vehicles();
    same(before.map(([id]) => id).sort(), names, 'hits');
    same(await networks(), 1, 'stored networks');
    await close();
  });

  await step('A page with another network answers with the old network at first, and then with its own', async () => {
    await open('/lent/');
    same(await networks(), 2, 'stored networks');
    for (;;) {
      const hits = await vehicles();
      same(hits.map(([id]) => id).sort(), names, 'hits');
      if (hits[0][1] < before[0][1]) break;
      await new Promise((r) => setTimeout(r, 20));
    }
    await close();
  });

  await step('The page removes the old network from the store', async () => {
    await open('/lent/');
    same(await networks(), 1, 'stored networks');
    const hits = await vehicles();
    check(hits.length === 2 && hits[0][1] < before[0][1], `hits are ${JSON.stringify(hits)}`);
    await close();
  });
  await browser.close();
  rmSync(folder, { recursive: true });
});
