// An addition of pictures loses none and adds none twice, although the page is reloaded, its tab is closed or killed, another tab works with
// it, the network is cut, or the browser's storage is full, at random moments. Nobody clicks anything meanwhile.
//
//     node adding.js               24 pictures and 8 interruptions
//     node adding.js 265 20 [7]    265 pictures and 20 interruptions, with the seed 7
import { check, checkEqual, journey, origin } from './browser.js';
import { caller, newKey, pollUntil } from './demonstration.js';
import { mulberry } from './mulberry.js';
import { lighthouse, sample } from './pictures.js';

const [pictures = 24, interruptions = 8, seed = 5] = process.argv.slice(2).map(Number);
const chance = mulberry(seed);
const fullBytes = 2_000_000; // a quota below the use of a page with a replica

/** Interrupts an addition. Afterwards the traveller's page shows the application. */
const interrupt = {
  'The page is reloaded': (t) => t.page.reload(),
  'The tab is closed and the application is opened in another one': async (t, app) => {
    await t.reopenTab();
    await t.page.goto(`/${app}/models`);
  },
  'Another tab takes over': async (t, app) => {
    const first = t.page;
    const second = await t.context.newPage();
    await second.goto(`/${app}/models`);
    await first.close();
    await t.reopenTab();
    await t.page.goto(`/${app}/concepts`);
    await second.close();
  },
  'The process of the tab is killed': async (t, app) => {
    const tab = await t.context.newCDPSession(t.page);
    const crash = t.page.waitForEvent('crash');
    tab.send('Page.crash').catch(() => {});
    await crash;
    await t.reopenTab();
    await t.page.goto(`/${app}/inputs`);
  },
  'The network is cut': async (t) => {
    await t.setOffline(true);
    await new Promise((resolve) => setTimeout(resolve, 2000 * chance()));
    await t.setOffline(false);
  },
  'The storage is full': async (t) => {
    const tab = await t.context.newCDPSession(t.page);
    await tab.send('Storage.overrideQuotaForOrigin', { origin, quotaSize: fullBytes });
    await new Promise((resolve) => setTimeout(resolve, 2000 * chance()));
    await tab.send('Storage.overrideQuotaForOrigin', { origin });
  },
};

await journey(async (arrive) => {
  const t = await arrive();
  const names = Array.from({ length: pictures }, (_, n) => `${seed}-${String(n).padStart(4, '0')}.jpg`);
  let [app, callApi] = [];
  await t.step('The browser has a replica, and a person chooses the pictures', async () => {
    await t.page.goto('/');
    await t.waitUntil(() => localStorage.getItem('copies'));
    app = await t.page.evaluate(() => JSON.parse(localStorage.getItem('copies'))[0].id);
    callApi = caller(origin, await newKey(t, app));
    await t.page.goto(`/${app}/inputs#upload`);
    const files = await Promise.all(
      names.map(async (name) => ({ name, mimeType: 'image/jpeg', buffer: await sample(lighthouse, name) })),
    );
    await t.page.locator('.drawer input[type=file]').first().setInputFiles(files);
    await pollUntil(
      () => readQueue(t.page, app),
      ({ entries }) => entries.length === pictures,
      'the stored pictures',
    );
  });
  const kinds = Object.entries(interrupt);
  for (let n = 1; n <= interruptions; n++) {
    const [name, work] = kinds[n <= kinds.length ? n - 1 : Math.floor(chance() * kinds.length)];
    await t.step(`${name}, in interruption ${n}`, async () => {
      await new Promise((resolve) => setTimeout(resolve, 1500 * chance()));
      await work(t, app);
      forgetExpected(t);
    });
  }
  await t.step('The origin has each picture once, and the browser keeps no file', async () => {
    const end = await pollUntil(
      () => readQueue(t.page, app),
      ({ entries, files }) => files === 0 && !entries.some(({ is }) => is === 'waiting'),
      `the queue, from the seed ${seed}`,
    );
    check(!end.entries.some(({ is }) => is === 'failed'), `failures: ${JSON.stringify(end.entries)}`);
    const added = [];
    for (let page = 1, count = 1; count > 0; page++) {
      const { inputs } = await callApi('GET', `/inputs?page=${page}&per_page=100`);
      count = inputs.length;
      added.push(...inputs.flatMap(({ data }) => data.metadata?.file ?? []));
    }
    checkEqual(added.filter((file) => names.includes(file)).sort(), names, 'the pictures at the origin');
    forgetExpected(t);
  });
});

/** Forgets the messages about requests that an interruption has ended, and about the full storage. */
function forgetExpected(t) {
  const expected =
    /the console says (Failed to load resource|An unknown error occurred when fetching the script|store: StoreError: the device takes no more)/;
  checkEqual(
    t.takeFaults().filter((fault) => !expected.test(fault)),
    [],
    'faults',
  );
}

/** Reads the stored queue of an application as a script of the page can: its entries and the number of files. */
function readQueue(page, app) {
  return page.evaluate(
    (name) =>
      new Promise((resolve, reject) => {
        const opening = indexedDB.open(name);
        opening.onupgradeneeded = () => opening.transaction.abort(); // the page has not created it yet
        opening.onerror = () => resolve({ entries: [], files: 0 });
        opening.onsuccess = () => {
          const read = opening.result.transaction(['entries', 'files']);
          const [entries, files] = [read.objectStore('entries').getAll(), read.objectStore('files').count()];
          read.oncomplete = () => {
            opening.result.close();
            resolve({ entries: entries.result.map(({ is, failure }) => ({ is, failure })), files: files.result });
          };
          read.onabort = () => reject(read.error);
        };
      }),
    `additions-${app}`,
  );
}
