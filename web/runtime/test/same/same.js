// Sends the same pictures and films to the origin, an edge, Node and a browser, and compares the answers with their embeddings byte by
// byte. Then it compares an application at the origin with its replicas in pages.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { Browser, check, same, serve, way } from '../pages/browser.js';
import { stills } from '../stills.js';
import { copies } from './copy/copy.js';

const { RUNTIME, PICTURES, SHARED, ORIGIN, ORIGIN_KEY, EDGE, EDGE_KEY } = process.env;
const models = {
  general: 'aaa03c23b3724a16a56b629203edc62c',
  food: 'bd367be194cf45149e75f01d59f77ba7',
  color: 'eeed0b6733a644cea07cf4c60f87ebb7',
  embed: 'bbb5f41425b8468d9b7a554ff10f8581',
};
const files = (folder, kinds) =>
  existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => kinds.test(name))
        .map((name) => ({ name, data: readFileSync(join(folder, name)) }))
    : [];
const pictures = [
  ...files(PICTURES, /\.jpg$/),
  ...stills,
  ...files(join(SHARED, 'field', 'pictures'), /\.(avif|heic|jxl)$/),
];

way(async (step) => {
  const { Sightline } = await import(pathToFileURL(join(RUNTIME, 'node.js')).href);
  const node = await Sightline.open({ base: RUNTIME, workers: 1 });
  const server = await serve({ origin: ORIGIN, connect: ORIGIN });
  const browser = await Browser.start(server.origin, { isAllowed: (url) => url.origin === ORIGIN });
  const page = await browser.page();
  await page.evaluate(() => open({ store: 'memory', workers: 1 }));
  // This does not use fetch, which stops waiting after five minutes. The first film must wait until its decoder is compiled, which may take
  // longer on a busy machine.
  const at = (url, key) => (path, body) =>
    new Promise((resolve, reject) => {
      const call = request(url + path, { method: 'POST', headers: { Authorization: `Key ${key}` } }, (answer) =>
        resolve(text(answer)),
      );
      call.on('error', reject).end(body);
    });
  const hosts = {
    origin: at(ORIGIN, ORIGIN_KEY),
    edge: at(EDGE, EDGE_KEY),
    node: async (path, body) => (await node.fetch(path, { method: 'POST', body })).text(),
    browser: (path, body) =>
      page.evaluate(async ([path, body]) => (await s.fetch(path, { method: 'POST', body })).text(), [path, body]),
  };
  const all = createHash('sha256');
  for (const [name, model] of Object.entries(models))
    await step(`The hosts give equal answers of the model ${name} for ${pictures.length} pictures`, async () => {
      for (const { name: picture, data: bytes } of pictures) {
        const body = JSON.stringify({ inputs: [{ data: { image: { base64: bytes.toString('base64') } } }] });
        const answers = await Promise.all(Object.values(hosts).map((ask) => ask(`/v2/models/${model}/outputs`, body)));
        const data = answers.map((a) => a.slice(a.lastIndexOf('"data":')));
        check(JSON.parse(answers[0]).status.code === 10000, `${picture} at the origin: ${answers[0].slice(0, 300)}`);
        for (const [i, host] of Object.keys(hosts).entries())
          check(
            data[i] === data[0],
            `${picture}: ${host} says ${data[i].slice(0, 300)}, the origin ${data[0].slice(0, 300)}`,
          );
        all.update(data[0]);
      }
    });
  const films = join(SHARED, 'video');
  const outcomes = existsSync(films)
    ? readFileSync(join(films, 'outcomes.tsv'), 'utf8').trimEnd().split('\n').slice(1)
    : [];
  for (const row of outcomes) {
    const [film, code] = row.split('\t');
    await step(`The hosts give equal answers for ${film}`, async () => {
      const base64 = readFileSync(join(films, film)).toString('base64');
      const body = JSON.stringify({ inputs: [{ data: { video: { base64 } } }] });
      const seen = {};
      for (const [host, ask] of Object.entries(hosts)) {
        const answer = await ask(`/v2/models/${models.general}/outputs`, body);
        const { status, data } = JSON.parse(answer).outputs[0];
        same(status.code, Number(code), `status at the ${host}: ${status.details}`);
        seen[host] =
          JSON.stringify(status) + (data?.frames ? answer.slice(answer.lastIndexOf('"data":{"frames"')) : '');
        check(
          seen[host] === seen.origin,
          `${host}: ${seen[host].slice(0, 300)}, the origin ${seen.origin.slice(0, 300)}`,
        );
      }
      all.update(seen.origin);
    });
  }
  await step('The hosts have compared forty pictures or more', async () => {
    same(pictures.length >= 40, true, 'forty pictures or more');
    return `SHA-256 ${all.digest('hex').slice(0, 16)}`;
  });
  await node.close();
  await page.close();
  await copies(step, server, browser);
  await browser.close();
  browser.forget();
  server.close();
});
