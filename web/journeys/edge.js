// Studio at an edge: a person pastes a key, and keeps working while the origin is stopped. The edge sends small pictures.
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { check, checkEqual, closePages, journey, setOrigin, words } from './browser.js';
import { caller, pollUntil } from './demonstration.js';
import { dropFiles, lighthouse, nameOf, tiles, waitForCount } from './pictures.js';
import { collectStatusTexts } from './screens.js';
import { startServer } from './servers.js';

const m = await words('en');
const program = process.env.PROGRAM;
const wideSize = [1200, 900]; // width and height of a picture that is larger than a thumbnail
const model = 'Bird or insect';

/** Runs a command of the origin to its end. */
const runOrigin = async (...args) => (await promisify(execFile)(program, args)).stdout.trim();

/** Runs `scenario` with an origin that has the samples, and with an edge that has joined the origin and has no other data. */
async function joinEdge(scenario) {
  const folder = await mkdtemp(join(tmpdir(), 'edge-'));
  const data = join(folder, 'origin');
  const serveOrigin = (listen) => startServer(program, ['--demo', '--listen', listen, '--data', data]);
  let origin = await serveOrigin('127.0.0.1:0');
  let edge;
  try {
    const originUrl = origin.address;
    const { app_id: app } = JSON.parse(await runOrigin('app', 'list', '--data', data, '--json'));
    const key = await runOrigin('key', 'create', '--app', app, '--scopes', 'All', '--data', data);
    const callApi = caller(originUrl, key);
    await pollUntil(
      () => callApi('GET', '/inputs/status'),
      ({ counts }) => counts?.processed === 42,
      'the samples',
    );
    const { token } = JSON.parse(await runOrigin('edge', 'create', 'north', '--apps', app, '--data', data, '--json'));
    const edgeArgs = [
      '--listen',
      '127.0.0.1:0',
      '--data',
      join(folder, 'edge'),
      '--origin',
      originUrl,
      '--token',
      token,
    ];
    edge = await startServer(join(dirname(program), 'sightline-edge'), edgeArgs);
    setOrigin(edge.address);
    await scenario({
      app,
      key,
      origin: originUrl,
      edge: edge.address,
      callApi,
      killOrigin: () => origin.end('SIGKILL'),
      startOrigin: async () => {
        origin = await serveOrigin(new URL(originUrl).host);
      },
    });
    await closePages();
    checkEqual(
      edge.log.filter((line) => line.includes('level=ERROR')),
      [],
      'errors of the edge',
    );
  } finally {
    await Promise.all([edge?.end('SIGINT'), origin.end('SIGINT')]);
    await rm(folder, { recursive: true });
  }
}

/** Waits until the side bar's line about the edge's sync status, its changes and its origin, has all these words. */
const waitForStatus = (s, ...texts) =>
  s.t.waitUntil(
    (texts) => texts.every((text) => document.querySelector('aside .foot a')?.textContent.includes(text)),
    texts,
  );

async function pasteKey(s, key) {
  await s.t.field(m('edge_key')).fill(key);
  await s.t.button(m('edge_open'), s.t.page.locator('main')).click();
}

async function pasteWrongKey(s) {
  const { t } = s;
  await t.page.goto(`/${s.app}/inputs`);
  await t.waitFor(t.heading(m('edge_open')));
  await t.checkAccessibility('the sign-in page of an edge');
  await pasteKey(s, '0123456789abcdef0123456789abcdef');
  await t.waitFor(t.page.getByRole('alert').getByText(m('edge_key_wrong')));
  await t.waitFor(t.page.getByText(m('edge_key_wrong_do')));
  await t.checkAccessibility('a key that opens nothing');
  await t.checkWidth('a key that opens nothing');
  checkEqual(await t.page.evaluate(() => sessionStorage.getItem('held')), null, 'what is held');

  // Adds a picture that is larger than a thumbnail at the origin.
  const base64 = await t.page.evaluate(([width, height]) => {
    const canvas = Object.assign(document.createElement('canvas'), { width, height });
    const context = canvas.getContext('2d');
    context.fillStyle = 'teal';
    context.fillRect(0, 0, width, height / 2);
    return canvas.toDataURL('image/jpeg').split(',')[1];
  }, wideSize);
  const input = { id: 'wide', data: { image: { base64 }, metadata: { name: 'Wide' } } };
  checkEqual((await s.callApi('POST', '/inputs', { inputs: [input] })).status.code, 10000, 'a picture at the origin');
}

/** Counts the picture requests since the last call: thumbnails, others, and failed ones. */
async function countPictureRequests(s) {
  const responses = s.responses.splice(0).filter((r) => /\/thumbnail$|^\/hosted\//.test(new URL(r.url()).pathname));
  const thumbnails = responses.filter((r) => /^\/v2\/inputs\/[^/]+\/thumbnail$/.test(new URL(r.url()).pathname));
  const failures = responses.filter((r) => r.status() !== 200).map((r) => `${r.status()} ${r.url()}`);
  return { small: new Set(thumbnails.map((r) => r.url())).size, large: responses.length - thumbnails.length, failures };
}

/** Waits until every tile shows its picture. */
const waitForPictures = (t, n) =>
  t.waitUntil((n) => {
    const images = [...document.querySelectorAll('[role=gridcell][data-cell][aria-label] img')];
    return images.length === n && images.every((img) => img.complete && img.naturalWidth > 0);
  }, n);

async function openPictures(s) {
  const { t } = s;
  await t.page.setViewportSize({ width: 1600, height: 2400 }); // all tiles at once
  await pasteKey(s, ` Key ${s.key.toUpperCase()} `); // a person may copy more than the key, and in capital letters
  await t.page.waitForURL((url) => url.pathname === `/${s.app}/inputs`);
  await waitForCount(t, 43);
  await waitForPictures(t, 43);
  checkEqual(await countPictureRequests(s), { small: 43, large: 0, failures: [] }, 'pictures that were asked for');
  const image = t.page.getByRole('gridcell', { name: /^Wide/ }).locator('img');
  checkEqual(
    await image.evaluate((img) => [img.naturalWidth, img.naturalHeight]),
    [320, 240],
    'the size of a thumbnail',
  );
  await waitForStatus(s, m('sync_summary_confirmed'), m('sync_summary_connected'));
  const storageTexts = await t.page.evaluate(() =>
    [sessionStorage, localStorage].map((storage) => JSON.stringify(storage)),
  );
  checkEqual(
    storageTexts.map((text) => text.includes(s.key)),
    [true, false],
    'whether the tab alone has the key',
  );
  checkEqual(await t.context.cookies(), [], 'cookies');
  await t.checkAccessibility('the pictures at an edge');
}

/** Adds the label `concept` to a picture. */
async function addLabel(s, picture, concept) {
  const { t } = s;
  await t.page.getByRole('gridcell', { name: picture }).locator('.ck').click();
  await t.press('l');
  await t.type(concept);
  await t.waitFor(t.page.getByRole('row').filter({ hasText: concept }));
  await t.press('Enter');
  await t.waitFor(t.page.getByRole('gridcell', { name: new RegExp(`${picture.source}.*${concept}`) }));
  await t.press('Escape');
  await t.press('Escape');
}

/** Returns the inputs that a place has. */
async function listInputs(callApi) {
  return (await callApi('GET', '/inputs?per_page=100')).inputs ?? [];
}
const findByName = (inputs, name) => inputs.find((input) => nameOf(input) === name);
const hasLabel = (input, concept) => input?.data.concepts?.some((c) => c.name === concept && c.value === 1) ?? false;

async function addLabelAndPicture(s) {
  const { t } = s;
  await addLabel(s, /^Castle gate/, 'tower');
  await dropFiles(t.page.locator('main'), [lighthouse], 'again');
  await waitForCount(t, 44);
  await waitForStatus(s, m('sync_summary_confirmed'), m('sync_summary_connected'));
  await waitForPictures(t, 44);
  const { large, failures } = await countPictureRequests(s);
  checkEqual([large, failures], [0, []], 'large pictures, and those that did not come');
  const inputs = await listInputs(s.callApi);
  checkEqual(
    [inputs.length, hasLabel(findByName(inputs, 'Castle gate'), 'tower')],
    [44, true],
    'what the origin has, once it is confirmed',
  );
  await t.checkAccessibility('a picture that was added at an edge');
}

async function searchAtEdge(s) {
  const { t } = s;
  const ands = JSON.stringify([{ output: { data: { concepts: [{ name: 'bird' }] } } }]);
  await t.page.goto(`/${s.app}/search?q=${encodeURIComponent(ands)}`);
  await t.waitFor(t.page.locator('li[data-id]'));
  await t.waitFor(t.page.getByText(/ at the edge$/)); // the text also has the time that the search took
  await t.waitUntil(() => [...document.querySelectorAll('li[data-id] img')].some((img) => img.naturalWidth > 0));
  const ids = await t.page.locator('li[data-id]').evaluateAll((hits) => hits.map((hit) => hit.dataset.id));
  const { hits } = await s.callApi('POST', '/searches?per_page=100', { query: { ands: JSON.parse(ands) } });
  check(ids.length > 0 && ids.every((id, i) => hits[i].input.id === id), `hits at the edge: ${ids}`);
  await t.checkAccessibility('a search at an edge');
  await t.page.setViewportSize({ width: 1440, height: 900 });
}

async function analysePicture(s) {
  const { t } = s;
  await t.page.goto('/');
  await t.waitFor(t.heading(m('look_first_title')));
  await t.checkAccessibility('the first page at an edge');
  await t.page.reload(); // a picture that is dropped before the recogniser is ready waits for it
  await t.waitFor(t.heading(m('look_first_title')));
  await dropFiles(t.page.locator('main'), ['40-red-whiskered-bulbul.jpg']);
  await t.waitFor(t.page.locator('.readout .words li'));
  await t.waitFor(t.page.getByText(m('look_predicted_device')));
  await t.page.getByRole('tab', { name: model }).click();
  await t.waitFor(t.page.getByText(m('look_predicted_edge')));
  checkEqual(
    await t.page.locator('.readout .words li .name').first().textContent(),
    'Bird',
    'what the model sees first',
  );
  await t.checkAccessibility('a picture that the edge has read');
}

async function workWithoutOrigin(s) {
  const { t } = s;
  await t.page.setViewportSize({ width: 1600, height: 2400 });
  // Delays the answer from which the page learns that it is at an edge until the page is drawn, as a busy edge may.
  const delaySession = async (route) => {
    await t.waitFor(t.page.locator('h1'));
    await route.continue();
  };
  await t.page.route('**/console/session', delaySession, { times: 1 });
  await t.page.goto(`/${s.app}/inputs`);
  await waitForPictures(t, 44);
  await s.killOrigin();
  await waitForStatus(s, m('sync_summary_offline_confirmed'));
  await addLabel(s, /^Beach in the wind/, 'tower');
  await waitForStatus(s, m('sync_summary_offline'), m('sync_summary_queued', { n: 1 }));
  await dropFiles(t.page.locator('main'), ['01-canal-in-venice.jpg'], 'again');
  await waitForCount(t, 45);
  await waitForStatus(s, m('sync_summary_offline'), m('sync_summary_queued', { n: 2 }));
  await waitForPictures(t, 45);
  await t.checkAccessibility('the pictures of an edge that is alone');
  const statusText = await t.page.locator('aside .foot a').textContent();
  check(!statusText.includes(m('sync_summary_connected')), `it says ${statusText}`);

  await t.page.locator('aside .foot a').click();
  await t.waitFor(t.heading(m('edge_waiting')));
  const pendingSection = t.page.locator('section[aria-labelledby="waiting"]');
  await t.waitFor(pendingSection.getByText('tower'));
  checkEqual(await pendingSection.getByRole('listitem').count(), 2, 'changes that wait');
  await t.waitFor(pendingSection.getByText(m('edge_safe')));
  await t.waitFor(t.heading(m('edge_work_waits', { n: '2' })));
  const devices = t.page.getByRole('region', { name: m('sync_devices'), exact: true }).getByRole('listitem');
  await t.waitFor(devices.filter({ hasText: m('edge_name', { name: 'north' }) }).filter({ hasText: m('keys') }));
  checkEqual(await devices.count(), 2, 'devices that an edge knows');
  const changes = t.page.getByRole('region', { name: m('sync_changes'), exact: true }).getByRole('listitem');
  await t.waitFor(changes.filter({ hasText: 'tower' }).filter({ hasText: m('mark_queued') }));
  await t.page.getByText(m('sync_details'), { exact: true }).click();
  await t.waitFor(t.page.getByText(m('edge_keys_offline', { writes: '24 hours', reads: '7 days' })));
  await t.waitFor(t.page.getByText(m('edge_name', { name: 'north' })));
  await t.checkAccessibility('what waits at an edge');

  // Search and Look also work without the origin.
  const ands = JSON.stringify([{ output: { data: { concepts: [{ name: 'bird' }] } } }]);
  await t.page.goto(`/${s.app}/search?q=${encodeURIComponent(ands)}`);
  await t.waitFor(t.page.locator('li[data-id]'));
  await t.page.goto('/');
  await t.waitFor(t.page.locator('.readout'));
  await dropFiles(t.page.locator('main'), ['40-red-whiskered-bulbul.jpg']);
  await t.page.getByRole('tab', { name: model }).click();
  await t.waitFor(t.page.getByText(m('look_predicted_edge')));
  checkEqual((await countPictureRequests(s)).failures, [], 'pictures that did not come');
}

async function restartOrigin(s) {
  const { t } = s;
  await t.page.goto(`/sync?app=${s.app}`);
  await waitForStatus(s, m('sync_summary_offline'), m('sync_summary_queued', { n: 2 }));
  const textsHandle = await t.page.evaluateHandle(collectStatusTexts);
  await s.startOrigin();
  await waitForStatus(s, m('sync_summary_confirmed'), m('sync_summary_connected'));
  const texts = await textsHandle.jsonValue();
  const earlierTexts = texts.slice(0, -1);
  check(
    !earlierTexts.some((line) => line.includes(m('sync_summary_confirmed'))),
    `it is said before it is so: ${texts}`,
  );
  await t.waitFor(t.page.getByText(m('sync_waiting_none')));
  const inputs = await listInputs(s.callApi);
  checkEqual(
    [inputs.length, hasLabel(findByName(inputs, 'Beach in the wind'), 'tower')],
    [45, true],
    'what the origin has, once it is confirmed',
  );
  await t.checkAccessibility('an edge that has nothing waiting');
}

async function reopenWithoutKey(s) {
  const { t } = s;
  await t.reopenTab();
  await t.page.goto(`/${s.app}/inputs`);
  await t.waitFor(t.heading(m('edge_open')));
  checkEqual(await tiles(t).count(), 0, 'pictures that are seen without a key');
}

await journey((arrive) =>
  joinEdge(async (places) => {
    const t = await arrive();
    const s = { t, ...places, responses: [] };
    t.context.on('response', (r) => s.responses.push(r));
    await t.step('The edge rejects a wrong key, and the page shows that', () => pasteWrongKey(s), [401]);
    await t.step('With the right key, the page loads every picture as a thumbnail', () => openPictures(s));
    await t.step('The origin confirms a label and a picture that were added at the edge', () => addLabelAndPicture(s));
    await t.step('The edge answers a search as the origin does', () => searchAtEdge(s));
    await t.step('The browser analyses a picture, and the edge predicts with a model of the application', () =>
      analysePicture(s),
    );
    await t.step('While the origin is killed, the edge stores changes and answers searches', () =>
      workWithoutOrigin(s),
    );
    await t.step('The restarted origin gets the changes that waited at the edge', () => restartOrigin(s));
    await t.step('A new tab does not have the key', () => reopenWithoutKey(s));
  }),
);
