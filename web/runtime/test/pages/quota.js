// The quota of the browser is lowered below its use while a page writes, and raised again, in a normal and in a private window. The page
// acknowledges no write that its files do not have, and the store opens again with all that it has acknowledged.
import { Browser, check, serve, way } from './browser.js';

const rounds = Number(process.env.ROUNDS ?? 2);
const moments = 5; // of each round
let seed = Number(process.env.SEED ?? 1);
const random = (n) => {
  seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
  return (seed >>> 16) % n;
};

/**
 * Runs in the page: adds inputs with metadata of some kilobytes, and changes some, until `most` calls were acknowledged or three were refused.
 * It returns the changes that were acknowledged, and the answers of the refused calls.
 */
async function write([round, most]) {
  const added = [];
  const refused = [];
  const filler = () => Array.from(crypto.getRandomValues(new Uint32Array(2000)), (n) => n.toString(36)).join('');
  for (let n = 0; added.length < most && refused.length < 3; n++) {
    const id = `r${round}-${n}`;
    const url = `http://pictures.test/${id}.png`;
    const data = { image: { url }, metadata: { n, filler: filler() } };
    const add = await call('POST', '/v2/inputs', { inputs: [{ id, data }] });
    if (add.status.code !== 10000) refused.push(add.status);
    else added.push([id, n]);
    if (add.status.code !== 10000 || n % 3) continue;
    const patch = { action: 'merge', inputs: [{ id, data: { metadata: { n: -n - 1 } } }] };
    const change = await call('PATCH', '/v2/inputs', patch);
    if (change.status.code !== 10000) refused.push(change.status);
    else added.push([id, -n - 1]);
  }
  return { added, refused };
}

/** Runs in the page: returns the number in the metadata of each input, by its id. */
async function all() {
  const found = {};
  for (let page = 1; ; page++) {
    const r = await call('GET', `/v2/inputs?per_page=100&page=${page}`);
    for (const { id, data } of r.inputs) found[id] = data.metadata.n;
    if (r.inputs.length < 100) return found;
  }
}

way(async (step) => {
  const server = await serve();
  for (const isPrivate of [false, true])
    for (let round = 0; round < rounds; round++) {
      const window = isPrivate ? 'private' : 'normal';
      await step(`A store in a ${window} window opens after the quota was exceeded, round ${round}`, async () => {
        const browser = await Browser.start(server.origin, { isPrivate });
        const want = {};
        const page = await browser.page();
        const { store } = await page.evaluate(() => open());
        check(store === 'private', `the store is ${store}`);
        const devtools = await browser.context.newCDPSession(page);
        const setQuota = (quotaSize) =>
          devtools.send('Storage.overrideQuotaForOrigin', { origin: server.origin, ...(quotaSize && { quotaSize }) });
        const refusals = [];
        for (let moment = 0; moment < moments; moment++) {
          const first = await page.evaluate(write, [`${round}-${moment}a`, 1 + random(30)]);
          check(first.refused.length === 0, `refused before the quota was lowered: ${JSON.stringify(first.refused)}`);
          const { usage } = await page.evaluate(() => navigator.storage.estimate());
          await setQuota(usage + random(100_000) - 50_000);
          const second = await page.evaluate(write, [`${round}-${moment}b`, 1000]);
          // In a normal window, the browser has reserved space for the files, sometimes more than these writes need.
          check(!isPrivate || second.refused.length > 0, 'no write was refused');
          for (const [id, n] of [...first.added, ...second.added]) want[id] = n;
          refusals.push(second.refused[0]?.code ?? 0);
          await setQuota();
        }
        await page.close();
        const next = await browser.page();
        await next.evaluate(() => open());
        const found = await next.evaluate(all);
        for (const [id, n] of Object.entries(want)) check(found[id] === n, `${id} has ${found[id]}, want ${n}`);
        await browser.close();
        browser.forget();
        return `${Object.keys(found).length} inputs, refusals ${refusals}`;
      });
    }
  server.close();
});
