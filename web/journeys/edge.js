// Studio at an edge: a person pastes a key, and keeps working while the origin is stopped. The edge sends small pictures.
import { execFile, spawn } from 'node:child_process';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { check, journey, leave, same, startAt, words } from './browser.js';
import { caller, until } from './demonstration.js';
import { count, drop, lighthouse, tiles } from './pictures.js';
import { travelled } from './screens.js';

const m = await words('en');
const program = process.env.PROGRAM;
const wide = [1200, 900]; // width and height of a picture that is larger than a thumbnail
const model = 'Bird or insect';

/** Starts a program that serves, and returns its URL, its log and a function that ends it. */
async function serves(path, args) {
  const running = spawn(path, ['serve', '--log-format', 'text', ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = new Promise((resolve) => running.once('exit', resolve));
  const said = [];
  const address = await new Promise((resolve, reject) => {
    createInterface({ input: running.stderr }).on('line', (line) => {
      said.push(line);
      const found = line.match(/msg=serving address=(\S+)/);
      if (found) resolve(found[1]);
    });
    void ended.then(() => reject(new Error(`it has ended:\n${said.join('\n')}`)));
  });
  return {
    address: `http://${address}`,
    said,
    end: (signal) => {
      running.kill(signal);
      return ended;
    },
  };
}

/** Runs a command of the origin to its end. */
const runs = async (...args) => (await promisify(execFile)(program, args)).stdout.trim();

/** Runs `way` with an origin that has the samples, and with an edge that has joined the origin and has no other data. */
async function joined(way) {
  const folder = await mkdtemp(join(tmpdir(), 'edge-'));
  const data = join(folder, 'origin');
  const begins = (listen) => serves(program, ['--demo', '--listen', listen, '--data', data]);
  let origin = await begins('127.0.0.1:0');
  let edge;
  try {
    const place = origin.address;
    const { app_id: app } = JSON.parse(await runs('app', 'list', '--data', data, '--json'));
    const key = await runs('key', 'create', '--app', app, '--scopes', 'All', '--data', data);
    const ask = caller(place, key);
    await until(
      () => ask('GET', '/inputs/status'),
      ({ counts }) => counts?.processed === 42,
      'the samples',
    );
    const { token } = JSON.parse(await runs('edge', 'create', 'north', '--apps', app, '--data', data, '--json'));
    const of = ['--listen', '127.0.0.1:0', '--data', join(folder, 'edge'), '--origin', place, '--token', token];
    await cp(process.env.WARM, join(folder, 'edge'), { recursive: true }); // where its module is compiled already
    edge = await serves(join(dirname(program), 'sightline-edge'), of);
    startAt(edge.address);
    await way({
      app,
      key,
      origin: place,
      edge: edge.address,
      ask,
      kill: () => origin.end('SIGKILL'),
      start: async () => {
        origin = await begins(new URL(place).host);
      },
    });
    await leave();
    same(
      edge.said.filter((line) => line.includes('level=ERROR')),
      [],
      'errors of the edge',
    );
  } finally {
    await Promise.all([edge?.end('SIGINT'), origin.end('SIGINT')]);
    await rm(folder, { recursive: true });
  }
}

/** Waits until the side bar's line about the edge's sync status, its changes and its origin, has all these words. */
const says = (s, ...all) =>
  s.t.until((all) => all.every((words) => document.querySelector('aside .foot a')?.textContent.includes(words)), all);

async function pastes(s, key) {
  await s.t.field(m('edge_key')).fill(key);
  await s.t.button(m('edge_open'), s.t.page.locator('main')).click();
}

async function refuses(s) {
  const { t } = s;
  await t.page.goto(`/${s.app}/inputs`);
  await t.seen(t.heading(m('edge_open')));
  await t.look('the door of an edge');
  await pastes(s, '0123456789abcdef0123456789abcdef');
  await t.seen(t.page.getByRole('alert').getByText(m('edge_key_wrong')));
  await t.seen(t.page.getByText(m('edge_key_wrong_do')));
  await t.look('a key that opens nothing');
  await t.fits('a key that opens nothing');
  same(await t.page.evaluate(() => sessionStorage.getItem('held')), null, 'what is held');

  // Adds a picture that is larger than a thumbnail at the origin.
  const base64 = await t.page.evaluate(([width, height]) => {
    const canvas = Object.assign(document.createElement('canvas'), { width, height });
    const pen = canvas.getContext('2d');
    pen.fillStyle = 'teal';
    pen.fillRect(0, 0, width, height / 2);
    return canvas.toDataURL('image/jpeg').split(',')[1];
  }, wide);
  const added = { id: 'wide', data: { image: { base64 }, metadata: { name: 'Wide' } } };
  same((await s.ask('POST', '/inputs', { inputs: [added] })).status.code, 10000, 'a picture at the origin');
}

/** Counts the picture requests since the last call: thumbnails, others, and failed ones. */
async function pictures(s) {
  const all = s.asked.splice(0).filter((r) => /\/thumbnail$|^\/hosted\//.test(new URL(r.url()).pathname));
  const small = all.filter((r) => /^\/v2\/inputs\/[^/]+\/thumbnail$/.test(new URL(r.url()).pathname));
  const bad = all.filter((r) => r.status() !== 200).map((r) => `${r.status()} ${r.url()}`);
  return { small: new Set(small.map((r) => r.url())).size, large: all.length - small.length, bad };
}

/** Waits until every tile shows its picture. */
const drawn = (t, n) =>
  t.until((n) => {
    const all = [...document.querySelectorAll('[role=gridcell][data-cell][aria-label] img')];
    return all.length === n && all.every((img) => img.complete && img.naturalWidth > 0);
  }, n);

async function opens(s) {
  const { t } = s;
  await t.page.setViewportSize({ width: 1600, height: 2400 }); // all tiles at once
  await pastes(s, ` Key ${s.key.toUpperCase()} `); // a person may copy more than the key, and in capital letters
  await t.page.waitForURL((url) => url.pathname === `/${s.app}/inputs`);
  await count(t, 43);
  await drawn(t, 43);
  same(await pictures(s), { small: 43, large: 0, bad: [] }, 'pictures that were asked for');
  const of = t.page.getByRole('gridcell', { name: /^Wide/ }).locator('img');
  same(await of.evaluate((img) => [img.naturalWidth, img.naturalHeight]), [320, 240], 'the size of a thumbnail');
  await says(s, m('truth_confirmed'), m('truth_connected'));
  const kept = await t.page.evaluate(() => [sessionStorage, localStorage].map((one) => JSON.stringify(one)));
  same(
    kept.map((all) => all.includes(s.key)),
    [true, false],
    'whether the tab alone has the key',
  );
  same(await t.context.cookies(), [], 'cookies');
  await t.look('the pictures at an edge');
}

/** Adds the label `concept` to a picture. */
async function labels(s, picture, concept) {
  const { t } = s;
  await t.page.getByRole('gridcell', { name: picture }).locator('.ck').click();
  await t.press('l');
  await t.type(concept);
  await t.seen(t.page.getByRole('row').filter({ hasText: concept }));
  await t.press('Enter');
  await t.seen(t.page.getByRole('gridcell', { name: new RegExp(`${picture.source}.*${concept}`) }));
  await t.press('Escape');
  await t.press('Escape');
}

/** The inputs at a place. */
async function list(ask) {
  return (await ask('GET', '/inputs?per_page=100')).inputs ?? [];
}
const named = (all, name) => all.find((input) => input.data.metadata?.name === name);
const has = (input, concept) => input?.data.concepts?.some((c) => c.name === concept && c.value === 1) ?? false;

async function adds(s) {
  const { t } = s;
  await labels(s, /^Castle gate/, 'tower');
  await drop(t.page.locator('main'), [lighthouse], 'again');
  await count(t, 44);
  await says(s, m('truth_confirmed'), m('truth_connected'));
  await drawn(t, 44);
  const { large, bad } = await pictures(s);
  same([large, bad], [0, []], 'large pictures, and those that did not come');
  const all = await list(s.ask);
  same([all.length, has(named(all, 'Castle gate'), 'tower')], [44, true], 'what the origin has, once it is confirmed');
  await t.look('a picture that was added at an edge');
}

async function finds(s) {
  const { t } = s;
  const ands = JSON.stringify([{ output: { data: { concepts: [{ name: 'bird' }] } } }]);
  await t.page.goto(`/${s.app}/search?q=${encodeURIComponent(ands)}`);
  await t.seen(t.page.locator('li[data-id]'));
  await t.seen(t.page.getByText(/ at the edge$/)); // the text also has the time that the search took
  await t.until(() => [...document.querySelectorAll('li[data-id] img')].some((img) => img.naturalWidth > 0));
  const ids = await t.page.locator('li[data-id]').evaluateAll((hits) => hits.map((one) => one.dataset.id));
  const { hits } = await s.ask('POST', '/searches?per_page=100', { query: { ands: JSON.parse(ands) } });
  check(ids.length > 0 && ids.every((id, i) => hits[i].input.id === id), `hits at the edge: ${ids}`);
  await t.look('a search at an edge');
  await t.page.setViewportSize({ width: 1440, height: 900 });
}

async function reads(s) {
  const { t } = s;
  await t.page.goto('/');
  await t.seen(t.heading(m('look_first_title')));
  await t.look('the first page at an edge');
  await t.page.reload(); // a picture that is dropped before the recogniser is ready waits for it
  await t.seen(t.heading(m('look_first_title')));
  await drop(t.page.locator('main'), ['40-red-whiskered-bulbul.jpg']);
  await t.seen(t.page.locator('.readout .words li'));
  await t.seen(t.page.getByText(m('look_here')));
  await t.page.getByRole('tab', { name: model }).click();
  await t.seen(t.page.getByText(m('edge_look')));
  same(await t.page.locator('.readout .words li .name').first().textContent(), 'Bird', 'what the model sees first');
  await t.look('a picture that the edge has read');
}

async function goesOn(s) {
  const { t } = s;
  await t.page.setViewportSize({ width: 1600, height: 2400 });
  // Delays the answer from which the page learns that it is at an edge until the page is drawn, as a busy edge may.
  const last = async (route) => {
    await t.seen(t.page.locator('h1'));
    await route.continue();
  };
  await t.page.route('**/console/session', last, { times: 1 });
  await t.page.goto(`/${s.app}/inputs`);
  await drawn(t, 44);
  await s.kill();
  await says(s, m('truth_offline_confirmed'));
  await labels(s, /^Beach in the wind/, 'tower');
  await says(s, m('truth_offline'), m('truth_queued', { n: 1 }));
  await drop(t.page.locator('main'), ['01-canal-in-venice.jpg'], 'again');
  await count(t, 45);
  await says(s, m('truth_offline'), m('truth_queued', { n: 2 }));
  await drawn(t, 45);
  await t.look('the pictures of an edge that is alone');
  const words = await t.page.locator('aside .foot a').textContent();
  check(!words.includes(m('truth_connected')), `it says ${words}`);

  await t.page.locator('aside .foot a').click();
  await t.seen(t.heading(m('edge_waiting')));
  const waiting = t.page.locator('section[aria-labelledby="waiting"]');
  await t.seen(waiting.getByText('tower'));
  same(await waiting.getByRole('listitem').count(), 2, 'changes that wait');
  await t.seen(waiting.getByText(m('edge_safe')));
  await t.seen(t.page.getByText(m('edge_keys_may', { writes: '24 hours', reads: '7 days' })));
  await t.seen(t.page.getByText(m('edge_name', { name: 'north' })));
  await t.look('what waits at an edge');

  // Search and Look work, too.
  const ands = JSON.stringify([{ output: { data: { concepts: [{ name: 'bird' }] } } }]);
  await t.page.goto(`/${s.app}/search?q=${encodeURIComponent(ands)}`);
  await t.seen(t.page.locator('li[data-id]'));
  await t.page.goto('/');
  await t.seen(t.page.locator('.readout'));
  await drop(t.page.locator('main'), ['40-red-whiskered-bulbul.jpg']);
  await t.page.getByRole('tab', { name: model }).click();
  await t.seen(t.page.getByText(m('edge_look')));
  same((await pictures(s)).bad, [], 'pictures that did not come');
}

async function comesBack(s) {
  const { t } = s;
  await t.page.goto(`/sync?app=${s.app}`);
  await says(s, m('truth_offline'), m('truth_queued', { n: 2 }));
  const way = await t.page.evaluateHandle(travelled);
  await s.start();
  await says(s, m('truth_confirmed'), m('truth_connected'));
  const said = await way.jsonValue();
  const waited = said.slice(0, -1);
  check(!waited.some((line) => line.includes(m('truth_confirmed'))), `it is said before it is so: ${said}`);
  await t.seen(t.page.getByText(m('sync_waiting_none')));
  const all = await list(s.ask);
  same(
    [all.length, has(named(all, 'Beach in the wind'), 'tower')],
    [45, true],
    'what the origin has, once it is confirmed',
  );
  await t.look('an edge that has nothing waiting');
}

async function leaves(s) {
  const { t } = s;
  await t.reopen();
  await t.page.goto(`/${s.app}/inputs`);
  await t.seen(t.heading(m('edge_open')));
  same(await tiles(t).count(), 0, 'pictures that are seen without a key');
}

await journey((arrive) =>
  joined(async (places) => {
    const t = await arrive();
    const s = { t, ...places, asked: [] };
    t.context.on('response', (r) => s.asked.push(r));
    await t.step('another key opens nothing, and is said to', () => refuses(s), [401]);
    await t.step('the key opens the pictures, which come small', () => opens(s));
    await t.step('a label and a picture are taken, and confirmed', () => adds(s));
    await t.step('a search is answered at the edge', () => finds(s));
    await t.step('a picture is read, also by a model of the application', () => reads(s));
    await t.step('the origin is killed, and the work goes on', () => goesOn(s));
    await t.step('the origin is back, and has what was said meanwhile', () => comesBack(s));
    await t.step('the key is gone with the tab', () => leaves(s));
  }),
);
