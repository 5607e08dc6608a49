// A browser tab that a test controls through standard input and output. Each line of input is a command in JSON, and each line of output
// the result of a command. edge/join_test.go tests an origin, two edges and this tab.
//
//     {"do":"open","app":"…","credential":"Key …"}      {"ok":{"owner":true}}
//     {"do":"call","method":"GET","path":"/v2/inputs"}   {"ok":{"status":200,"headers":{…},"body":{…}}}
//
// Playwright supplies the empty page, so the browser requests only the runtime from the server.
import { readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { Browser } from '../pages/browser.js';

const { ORIGIN } = process.env;
let browser;
let page;

/** Kills the main process of the browser. The other processes end with it. */
function kill() {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    let words = [];
    try {
      words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    } catch {
      continue; // it has ended
    }
    if (words.includes(`--user-data-dir=${browser.profile}`) && !words.some((w) => w.startsWith('--type=')))
      process.kill(Number(pid), 'SIGKILL');
  }
}

/** Starts the browser, with its previous profile if there is one. */
async function start() {
  browser = await Browser.start(ORIGIN, { profile: browser?.profile, console: (text) => console.error(text) });
  await browser.context.route('**/empty', (route) =>
    route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>Tab</title>' }),
  );
}

const commands = {
  async open({ app, credential }) {
    page = await browser.page('/empty');
    return page.evaluate(
      ([app, authorization]) =>
        open({ workers: 1, copy: { origin: '', app, credential: async () => authorization, name: 'tab' } }).then(
          (o) => ({
            owner: o.owner,
            store: o.store,
          }),
        ),
      [app, credential],
    );
  },
  call: ({ method, path, body }) =>
    page.evaluate(
      async ([method, path, body]) => {
        const r = await s.fetch(path, { method, ...(body && { body: JSON.stringify(body) }) });
        return { status: r.status, headers: Object.fromEntries(r.headers), body: await r.json() };
      },
      [method, path, body],
    ),
  status: () => page.evaluate(() => s.sync.status()),
  digest: () => page.evaluate(() => s.sync.digest()),
  /** Returns the size in bytes of each file of the replica. */
  files: ({ app }) =>
    page.evaluate(async (app) => {
      let folder = await navigator.storage.getDirectory();
      for (const name of ['sightline', `copy-${app}`]) folder = await folder.getDirectoryHandle(name);
      const sizes = {};
      for await (const [name, file] of folder) if (file.kind === 'file') sizes[name] = (await file.getFile()).size;
      return sizes;
    }, app),
  /** Kills the browser at once, and starts it again. */
  async kill() {
    const closed = new Promise((resolve) => browser.context.once('close', resolve));
    kill();
    await closed;
    await start();
  },
  async close() {
    await browser.close();
    return browser.profile;
  },
};

await start();
console.log('{}');
for await (const line of createInterface({ input: process.stdin })) {
  const { do: name, ...args } = JSON.parse(line);
  try {
    console.log(JSON.stringify({ ok: (await commands[name](args)) ?? null }));
  } catch (failure) {
    console.log(JSON.stringify({ failure: String(failure?.stack ?? failure) }));
  }
}
browser?.forget();
process.exit();
