// Pages of Studio in threads of Node, see page.ts.
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { build } from 'vite';

const root = new URL('../..', import.meta.url).pathname;

/** Builds the script of the pages in a folder, and returns its URL. */
export async function buildPage(folder) {
  await build({
    root,
    configFile: join(root, 'vite.test.config.ts'),
    logLevel: 'error',
    publicDir: false,
    build: {
      ssr: true,
      outDir: folder,
      rollupOptions: { input: [join(root, 'journeys/marks/page.ts')], output: { entryFileNames: 'page.mjs' } },
    },
  });
  return new URL(`file://${join(folder, 'page.mjs')}`).href;
}

/** Opens a page. options: `workerData` of browser.js and page.ts. */
export async function openPage(options) {
  const adapter = new URL('runtime.js', import.meta.url).href;
  const worker = new Worker(new URL('browser.js', import.meta.url), { workerData: { adapter, ...options } });
  const open = new Map();
  let failure;
  const fail = (reason) => {
    failure = reason;
    for (const { reject } of open.values()) reject(reason);
  };
  worker.on('message', ({ id, value, failure }) => {
    const { resolve, reject } = open.get(id);
    open.delete(id);
    if (failure) reject(new Error(failure));
    else resolve(value);
  });
  worker.on('error', fail);
  worker.on('exit', () => fail(new Error('the page has ended')));
  const wait = (id) =>
    new Promise((resolve, reject) => (failure ? reject(failure) : open.set(id, { resolve, reject })));
  await wait(0);
  let last = 0;
  const page = {
    isDrawn: false,
    ask: (name, args = {}) => {
      const answer = wait(++last);
      worker.postMessage({ id: last, name, args });
      return answer;
    },
    /** Closes the page, and returns the values of its storages. */
    close: async () => {
      const values = await page.ask('close');
      await worker.terminate();
      return values;
    },
  };
  return page;
}
