// Pages, their processes and the whole browser are killed while they write. Afterwards the store has every acknowledged write, and nothing
// that no page wrote.
import { readdirSync, readFileSync } from 'node:fs';
import { Browser, check, serve, way } from './browser.js';

const rounds = Number(process.env.ROUNDS ?? 3);
let seed = Number(process.env.SEED ?? 1);
const random = (n) => {
  seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
  return (seed >>> 16) % n;
};

/** Kills the main process of the browser with a profile. The browser's other processes end with it. */
function killBrowser(profile) {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    let words = [];
    try {
      words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    } catch {
      continue; // it has ended
    }
    if (words.includes(`--user-data-dir=${profile}`) && !words.some((w) => w.startsWith('--type=')))
      process.kill(Number(pid), 'SIGKILL');
  }
}

/**
 * Runs in the page until it is killed: adds inputs, changes them and deletes some, and reports each call before it and after its answer.
 */
async function write(round) {
  const smallPicture = async (n) => {
    const canvas = new OffscreenCanvas(40, 30);
    const context = canvas.getContext('2d');
    context.fillStyle = `hsl(${(n * 47) % 360} 80% 50%)`;
    context.fillRect(0, 0, 40, 30);
    context.fillStyle = `hsl(${(n * 101) % 360} 80% 50%)`;
    context.fillRect(n % 30, n % 20, 10, 10);
    const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: 'image/png' })).arrayBuffer());
    return btoa(String.fromCharCode(...bytes));
  };
  for (let n = 0; ; n++) {
    const id = `r${round}-${n}`;
    const base64 = await smallPicture(n + 1000 * round);
    await reportCall('asked', id);
    const data = { image: { base64 }, metadata: { n } };
    const r = await call('POST', '/v2/inputs', { inputs: [{ id, data }] });
    if (r.status.code !== 10000) throw new Error(JSON.stringify(r));
    reportCall('added', id);
    if (n % 3 === 1) {
      const patch = { action: 'overwrite', inputs: [{ id, data: { metadata: { changed: true } } }] };
      await reportCall('changing', id);
      if ((await call('PATCH', '/v2/inputs', patch)).status.code === 10000) reportCall('changed', id);
    }
    if (n % 5 === 4) {
      await reportCall('deleting', id);
      if ((await call('DELETE', `/v2/inputs/${id}`)).status.code === 10000) reportCall('deleted', id);
    }
  }
}

/** Runs in the page: returns by the id of each input whether its metadata was changed. */
async function all() {
  const found = {};
  for (let page = 1; ; page++) {
    const r = await call('GET', `/v2/inputs?per_page=1000&page=${page}`);
    for (const i of r.inputs) {
      const picture = await s.fetch(i.data.image.url);
      found[i.id] = [Boolean(i.data.metadata?.changed), picture.status, (await picture.arrayBuffer()).byteLength > 50];
    }
    if (r.inputs.length < 1000) return found;
  }
}

way(async (step) => {
  const server = await serve();
  const state = new Map(); // id → the last report about this input
  let profile;
  let browser;
  let acknowledged = 0;
  const startBrowser = async () => {
    browser = await Browser.start(server.origin, { ...(profile && { profile }) });
    profile = browser.profile;
    await browser.context.exposeFunction('reportCall', (report, id) => {
      state.set(id, report);
      if (['added', 'changed', 'deleted'].includes(report)) acknowledged++;
    });
  };
  await startBrowser();
  for (let round = 0; round < rounds; round++) {
    const ending = ['a closed page', 'a killed page', 'a killed browser'][round % 3];
    await step(`The store has every acknowledged input after ${ending}, round ${round}`, async () => {
      const page = await browser.page();
      const { took, store } = await page.evaluate(() => open());
      check(store === 'private', `the store is ${store}`);
      const before = acknowledged;
      page.evaluate(write, round).catch(() => {}); // the call fails when the page is killed
      for (const target = before + 5 + random(40); acknowledged < target; ) await new Promise((r) => setTimeout(r, 1));
      if (round % 3 === 0) await page.close();
      else if (round % 3 === 1) {
        const devtools = await browser.context.newCDPSession(page);
        const crashed = new Promise((resolve) => page.once('crash', resolve));
        devtools.send('Page.crash').catch(() => {});
        await crashed;
        await page.close();
      } else {
        const closed = new Promise((resolve) => browser.context.once('close', resolve));
        killBrowser(profile);
        await closed;
        await startBrowser();
      }
      const next = await browser.page();
      await next.evaluate(() => open());
      const found = await next.evaluate(all);
      for (const [id, report] of state) {
        const has = found[id];
        delete found[id];
        if (report === 'deleted') check(!has, `${id} was deleted and is there`);
        else if (report !== 'asked' && report !== 'deleting') check(has, `${id} was acknowledged and is gone`);
        if (report === 'changed') check(has[0], `the change of ${id} is gone`);
        if (has) check(has[1] === 200 && has[2], `the picture of ${id} answers ${has[1]}`);
        if (!has) state.set(id, 'deleted');
      }
      check(Object.keys(found).length === 0, `nobody asked for ${Object.keys(found)}`);
      await next.close();
      return `${acknowledged - before} acknowledged, opened in ${Math.round(took)} ms`;
    });
  }
  await browser.close();
  browser.forget();
  server.close();
});
