// Decodes the test films in Node, and compares the planes of each frame and the status with the films' tables. The scripts in the folder
// same compare the answers of /v2.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { check, same, way } from '../pages/browser.js';

const { RUNTIME, SHARED } = process.env;
const script = (name) => import(pathToFileURL(join(RUNTIME, `${name}.js`)).href);
const films = join(SHARED, 'video');
const table = (name) =>
  readFileSync(join(films, name), 'utf8')
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => line.split('\t'));
const statuses = { 0: '10000', 4: '31101', 5: '31105', 6: '31300' }; // status codes of /v2 by the code of the result

way(async (step) => {
  if (!existsSync(films)) return step(`${films} is missing: no film is decoded`, async () => {});
  const [{ inFolder }, { load }, { compile, Guest, system }, { askFilm, decodeVideo, refusal }, { withMemory }] =
    await Promise.all(['nodefiles', 'load', 'guest', 'film', 'command'].map(script));
  const { Reader, Writer } = await script('envelope');
  const loaded = await load(inFolder(pathToFileURL(`${RUNTIME}/`)), () => {});
  const services = { ...system, bundle: (name) => loaded.bundles.get(name) };
  const settings = { role: 'engine', store: 'memory', bundles: [...loaded.bundles.keys()], openDoor: true };
  const guest = await Guest.open(await compile(loaded.guest, loaded.kernels), services, settings);
  const { memory } = askFilm(guest, 'film', { output: new Uint8Array([0x1a, 0x45, 0xdf, 0xa3]) });
  const module = await WebAssembly.compile(withMemory(await loaded.later('ffmpreg.wasm'), 2 * memory));
  const video = new Writer().uint(1, 1000).uint(2, 600).finish();

  /** Decodes a film to the SHA-256 of each frame. It does not run the neural network. */
  async function decode(data) {
    const sums = [];
    const analyst = {
      call(name, argument) {
        if (name !== 'analyse') return guest.call(name, argument);
        for (const r = Reader.envelope(argument); r.next(); )
          if (r.number === 2) sums.push(createHash('sha256').update(r.raw()).digest('hex'));
        return Writer.envelope().finish();
      },
    };
    try {
      const probe = askFilm(guest, 'film', { output: data.subarray(0, 4096) });
      if (!probe.args.length) return { result: {}, sums };
      const task = { module, job: { video }, data: new Blob([data]), probe };
      return { result: await decodeVideo(analyst, task, () => {}), sums };
    } catch (failure) {
      return { result: refusal(failure), sums };
    }
  }

  const planes = new Map();
  for (const row of table('planes.tsv')) planes.set(row[0], [...(planes.get(row[0]) ?? []), row.at(-1)]);
  for (const [film, status] of table('outcomes.tsv'))
    await step(film, async () => {
      const { result, sums } = await decode(readFileSync(join(films, film)));
      same(statuses[result.error ?? 0], status, `status, where the text is ${result.text}`);
      const want = planes.get(film) ?? [];
      check(status !== '10000' || film.endsWith('.gif') || want.length > 0, 'no planes are said of it');
      if (status === '10000') same(sums, want, 'planes');
      return `${sums.length} frames`;
    });
});
