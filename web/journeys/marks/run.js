// Runs random programs, see program.js, with the pages' code in Node or, if CHROMIUM is its path, in Chromium. FROM and ROUNDS: the first
// round and the number of rounds. PROGRAMS: the number of programs in a round, which have one origin. It prints a line for each round, and
// stops after a false mark.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium as browser } from 'playwright-core';
import { browserArgs } from '../browser.js';
import { openDrawnPage } from './drawn.js';
import { listAll } from './lists.js';
import { buildPage, openPage } from './pages.js';
import { Program } from './program.js';
import { world } from './world.js';

const { CHROMIUM, RUNTIME, FROM = '0', ROUNDS = '1', PROGRAMS = '1' } = process.env;
const steps = CHROMIUM ? 12 : 20; // of a program
const lanes = CHROMIUM ? 3 : 6; // rounds at the same time
const folder = await mkdtemp(join(tmpdir(), 'marks-page-'));
const page = CHROMIUM || (await buildPage(folder));
const chromium = CHROMIUM ? await browser.launch({ executablePath: CHROMIUM, args: browserArgs }) : undefined;

/** Calls a host of /v2. */
const caller = (url, key) => async (method, path, body) => {
  const headers = { Authorization: `Key ${key}` };
  const answer = await fetch(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  return { operations: answer.headers.get('X-Sightline-Operations'), ...(await answer.json()) };
};

/** Opens the pages of the browser and of the edge, and returns the functions with which a program reaches the hosts. */
async function openPlaces(w) {
  const { app, account, key } = w;
  const call = { edge: caller(w.edge, key), origin: caller(w.origin, key) };
  const offline = [{ id: app, name: 'marks', language: 'en', account }];
  const held = [{ id: app, name: 'marks', language: 'en', authorization: `Key ${key}` }];
  const ofBrowser = {
    url: w.links.browser.address,
    app,
    cookies: w.cookies,
    runtime: RUNTIME,
    folder: join(w.folder, 'browser'),
  };
  const storages = { local: { account, copies: JSON.stringify(offline) }, session: {} };
  const ofEdge = { url: w.edge, app, local: {}, session: { held: JSON.stringify(held) } };
  const open = async (options, call) => {
    if (chromium) return openDrawnPage(chromium, { ...options, call });
    const opened = await openPage({ page, ...options });
    await opened.ask('begin');
    return opened;
  };
  const pages = { browser: await open({ ...ofBrowser, ...storages }), edge: await open(ofEdge, call.edge) };
  call.browser = (method, path, body) => pages.browser.ask('call', { method, path, body });
  return {
    ...w,
    pages,
    call,
    lists: {
      browser: () => pages.browser.ask('lists'),
      edge: async () => {
        const { copy } = await call.edge('GET', '/v2/sync/status');
        return copy && { status: copy, ...(await listAll(call.edge)) };
      },
    },
    async reload() {
      if (chromium) await pages.browser.ask('reload');
      else pages.browser = await open({ ...ofBrowser, ...(await pages.browser.close()) });
    },
  };
}

/** Runs the programs of seeds with one origin. It returns the number of marks and of contradictions. */
async function runRound(seeds) {
  let [marks, contradictions, running] = [0, 0, seeds[0]];
  try {
    const errors = await world(async (w) => {
      const place = await openPlaces(w);
      for (running of seeds) {
        const program = new Program(place, running);
        await program.run(steps);
        marks += program.checked;
        contradictions += program.contradictions;
      }
      for (const one of Object.values(place.pages)) await one.close();
    });
    if (errors.length) throw new Error(`a server reports ${errors.join('\n')}`);
    return `${marks} true marks, ${contradictions} contradictions`;
  } catch (failure) {
    throw new Error(`program ${running}: ${failure.stack}`);
  }
}

// Most of the time the programs wait for connections, so several run at the same time.
const left = Array.from({ length: Number(ROUNDS) }, (_, i) => Number(FROM) + i);
let failed = false;
const lane = async () => {
  while (left.length && !failed) {
    const [since, round] = [performance.now(), left.shift()];
    const seeds = Array.from({ length: Number(PROGRAMS) }, (_, i) => round * Number(PROGRAMS) + i);
    try {
      const figures = await runRound(seeds);
      const took = Math.round((performance.now() - since) / 1000);
      console.log(`ok Round ${round}, programs ${seeds[0]} to ${seeds.at(-1)}: ${figures}, ${took} s`);
    } catch (failure) {
      failed = true;
      console.log(failure.message);
    }
  }
};
await Promise.all(Array.from({ length: lanes }, lane));
await chromium?.close();
await rm(folder, { recursive: true });
process.exit(failed ? 1 : 0);
