// The runtime of a page in Node, which the page imports as /runtime/index.js.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { workerData } from 'node:worker_threads';
import { noteOperations } from './browser.js';

const { runtime, folder, url } = workerData;
const node = await import(pathToFileURL(join(runtime, 'node.js')).href);

export const Sightline = {
  async open(options) {
    const copy = { ...options.copy, origin: url };
    const client = await node.Sightline.open({ ...options, base: runtime, store: { folder }, workers: 1, copy });
    const fetch = client.fetch.bind(client);
    client.fetch = async (path, init) => noteOperations(await fetch(path, init));
    return client;
  },
};
