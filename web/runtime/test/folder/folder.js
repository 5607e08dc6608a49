// The runtime in Node with a replica in a folder. A test controls it by lines of JSON, as it controls a tab (tab/tab.js), and
// kills the process. edge/rounds_test.go tests an origin, two edges and this program.
//
//     {"do":"open","folder":"…","origin":"…","app":"…","credential":"Key …"}      {"ok":{"store":"folder"}}
//     {"do":"call","method":"GET","path":"/v2/inputs"}                            {"ok":{"status":200,"headers":{…},"body":{…}}}
//     {"do":"digest"}                                                             {"ok":{"seq":7,"digest":"…"}}
//     {"do":"close"}                                                              {"ok":null}
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const { RUNTIME } = process.env;
const { Sightline } = await import(pathToFileURL(`${RUNTIME}/node.js`).href);
let s;

const commands = {
  async open({ folder, origin, app, credential }) {
    s = await Sightline.open({
      base: RUNTIME,
      store: { folder },
      workers: 1,
      copy: { origin, app, credential: async () => credential, name: 'page' },
    });
    return { store: s.store };
  },
  async call({ method, path, body }) {
    const r = await s.fetch(path, { method, ...(body && { body: JSON.stringify(body) }) });
    return { status: r.status, headers: Object.fromEntries(r.headers), body: await r.json() };
  },
  digest: () => s.sync.digest(),
  close: () => s.close(),
};

console.log('{}');
for await (const line of createInterface({ input: process.stdin })) {
  const { do: name, ...args } = JSON.parse(line);
  try {
    console.log(JSON.stringify({ ok: (await commands[name](args)) ?? null }));
  } catch (failure) {
    console.log(JSON.stringify({ failure: String(failure?.stack ?? failure) }));
  }
}
process.exit();
