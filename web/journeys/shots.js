// Pictures of the pages, in the states that the design has drawn: `make shots`. Where the design lies beside the
// project, a page shows each beside its drawing.
//
//     node shots.js PROGRAM OUT [DRAWN]    PROGRAM: bin/sightline; OUT: a folder; DRAWN: the design's pictures
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';
import { quiet } from './browser.js';

const [program, out, drawn] = process.argv.slice(2).map((path) => resolve(path));
if (!out) throw new Error('usage: node shots.js PROGRAM OUT [DRAWN]');

const wide = { width: 1440, height: 900 };
const app = (page) => page.evaluate(() => JSON.parse(localStorage.getItem('copies') ?? '[]')[0]?.id);
const open = (path) => async (page) => page.goto(path.includes(':app') ? path.replace(':app', await app(page)) : path);
const then =
  (...steps) =>
  async (page) => {
    for (const step of steps) await step(page);
  };
const click = (selector) => (page) => page.locator(selector).first().click();
const q = (ands) => `?q=${encodeURIComponent(JSON.stringify(ands))}`;

const near = {
  input: {
    data: { geo: { geo_point: { latitude: 47, longitude: 9 }, geo_limit: { type: 'withinKilometers', value: 4000 } } },
  },
};
const birds = { output: { data: { concepts: [{ name: 'bird' }] } } };
const tile = '[role=gridcell] a';

/** The states, by the name of the design's picture without its colours. A state may be drawn in several. */
const states = {
  'first-run': { take: open('/'), before: true },
  look: { take: then(open('/'), click('main button:has-text("Bee on a petal")')) },
  'look.ar': { take: then(open('/'), click('main button:has-text("Bee on a petal")')), language: 'ar' },
  inputs: { take: open('/:app/inputs') },
  'inputs-upload': { take: open('/:app/inputs#upload') },
  input: { take: then(open('/:app/inputs'), click(tile)) },
  search: { take: open(`/:app/search${q([birds, near])}`) },
  next: { take: open('/:app/next?model=bird-or-insect') },
  models: { take: open('/:app/models') },
  model: { take: open('/:app/models/bird-or-insect') },
  concepts: { take: open('/:app/concepts') },
  applications: { take: open('/apps/:app') },
  'app-create': { take: open('/apps/:app#new') },
  sync: { take: open('/sync') },
  docs: { take: open('/docs') },
};

const data = await mkdtemp(join(tmpdir(), 'shots-'));
const demo = spawn(program, ['demo', '--edges', '1', '--listen', '127.0.0.1:0', '--data', join(data, 'data')], {
  stdio: ['pipe', 'pipe', 'inherit'],
});
const ended = new Promise((resolve) => demo.once('exit', resolve));
const address = await new Promise((resolve, reject) => {
  void ended.then(() => reject(new Error('the demonstration has ended')));
  createInterface({ input: demo.stdout }).on('line', (line) => {
    const found = line.match(/^Sightline is at (.*)$/)?.[1];
    if (found) resolve(found);
  });
});
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: quiet });
const taken = [];
try {
  await mkdir(out, { recursive: true });
  for (const colorScheme of ['light', 'dark'])
    for (const viewport of [wide, { width: 360, height: 740 }, { width: 2400, height: 1350 }])
      await shoot({ colorScheme, viewport });
  await writeFile(join(out, 'index.html'), await beside());
  console.log(`${taken.length} pictures: ${join(out, 'index.html')}`);
} finally {
  await browser.close();
  demo.kill('SIGINT');
  await ended;
  await rm(data, { recursive: true });
}
process.exit(); // browser.js listens

/** Goes through all states in one size and colour, each language in a browser of its own that has a copy. */
async function shoot({ colorScheme, viewport }) {
  for (const language of ['en', 'ar']) {
    const here = Object.entries(states).filter(([, s]) => (s.language ?? 'en') === language);
    const context = await browser.newContext({
      baseURL: address,
      viewport,
      colorScheme,
      locale: language,
      reducedMotion: 'reduce',
    });
    context.setDefaultTimeout(10_000);
    const page = await context.newPage();
    const shot = async (name, state) => {
      try {
        await state.take(page);
        await settled(page);
      } catch (failure) {
        console.log(`${name}: ${failure.message.split('\n')[0]}`);
      }
      const file = `${name}-${colorScheme}-${viewport.width}.png`;
      await page.screenshot({ path: join(out, file) });
      taken.push({ name, colorScheme, viewport, file });
    };
    for (const [name, state] of here) if (state.before) await shot(name, state);
    await page.goto('/');
    await page.waitForFunction(() => localStorage.getItem('copies'), undefined, { timeout: 60_000 });
    for (const [name, state] of here) if (!state.before) await shot(name, state);
    await context.close();
  }
}

/** Waits until nothing on the page is loading, and its pictures are there. */
async function settled(page) {
  await page.waitForFunction(
    () =>
      document.querySelector('main h1') &&
      !document.querySelector('[aria-busy="true"]') &&
      [...document.images].every((image) => image.complete),
    undefined,
    { timeout: 20_000 },
  );
  await page.evaluate(() => new Promise((resolve) => requestIdleCallback(resolve, { timeout: 2000 })));
}

/** A page with every picture beside its drawing, where there is one. */
async function beside() {
  const rows = taken.map(({ name, colorScheme, viewport, file }) => {
    const mock = drawn && join(drawn, `${name}-${colorScheme}.png`);
    const has = viewport.width === wide.width && mock && existsSync(mock);
    return `<tr><th>${name}<br>${colorScheme}, ${viewport.width} px</th><td><img src="${file}"></td><td>${has ? `<img src="${relative(out, mock)}">` : ''}</td></tr>`;
  });
  const style =
    'body{font:13px system-ui}img{width:45vw;height:auto;border:1px solid #ccc}th{text-align:start;vertical-align:top}';
  return `<!doctype html><meta charset="utf-8"><title>Pages and drawings</title><style>${style}</style><table>${rows.join('\n')}</table>\n`;
}
