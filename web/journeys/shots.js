// Pictures of the pages, in the states that the design has drawn: `make shots`. If the design is in a folder next to the project, a page
// shows each picture next to its drawing.
//
//     node shots.js PROGRAM OUT [DRAWN]    PROGRAM: bin/sightline; OUT: a folder; DRAWN: the design's pictures
//
// It also takes screenshot.png, the picture in README.md, which make shots copies to web/screenshot.png.
//
// STATES lists the names of the states to take, if not all; screenshot is one of them.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';
import { browserArgs, words } from './browser.js';
import { caller, newApp, newKey, pollUntil } from './demonstration.js';
import { dropFiles, lighthouse } from './pictures.js';

const [program, out, drawings] = process.argv.slice(2).map((path) => resolve(path));
if (!out) throw new Error('usage: node shots.js PROGRAM OUT [DRAWN]');
const stateNames = process.env.STATES?.split(/[ ,]+/);
const en = await words('en');

const wide = { width: 1440, height: 900 };
const telephone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };
const rounds = [
  { colorScheme: 'light', viewport: wide },
  { colorScheme: 'dark', viewport: wide },
  { colorScheme: 'light', ...telephone },
  { colorScheme: 'dark', ...telephone },
  { colorScheme: 'light', viewport: { width: 2400, height: 1350 } },
];
const places = {}; // URLs of the servers by their role; app, empty: ids of two applications of the demonstration
let callApi; // calls the API of the demonstration's origin
const open = (path) => (page) => page.goto(path.replace(/:(app|empty)/, (_, name) => places[name]));
const sequence =
  (...steps) =>
  async (page) => {
    for (const step of steps) await step(page);
  };
const click = (selector) => (page) => page.locator(selector).first().click();
const waitForText = (text) => (page) => page.getByText(text).first().waitFor();
const button = (name) => (page) => page.getByRole('button', { name, exact: true }).first().click();
const q = (ands) => `?q=${encodeURIComponent(JSON.stringify(ands))}`;

const sample = (file) => readFile(new URL(`../samples/${file}`, import.meta.url));
const geo = (place) => ({ input: { data: { geo: place } } });
const alps = { latitude: 48, longitude: 10 };
const near = geo({ geo_point: alps, geo_limit: { type: 'withinKilometers', value: 1600 } });
const box = geo({
  geo_box: [{ geo_point: { latitude: 60, longitude: -12 } }, { geo_point: { latitude: 36, longitude: 24 } }],
});
const conceptClause = (name) => ({ output: { data: { concepts: [{ name }] } } });
const birds = conceptClause('bird');
const outdoors = conceptClause('outdoors');
// Returns the id of a picture. The demonstration gives its pictures ids by the same rule.
const idOf = (bytes) => createHash('sha256').update(bytes).digest('hex').slice(0, 32);
const horses = idOf(await sample('38-horses-in-salzburg.jpg'));
const like = { output: { input: { id: horses } } };
const nowhere = geo({
  geo_point: { latitude: -60, longitude: -140 },
  geo_limit: { type: 'withinKilometers', value: 40 },
});
const tile = '[role=gridcell] a';
const model = '/:app/models/bird-or-insect';

/** Labels the first picture of the page. */
const labelFirst = sequence(click('[role=gridcell] .ck'), async (page) => {
  await page.keyboard.press('l');
  await page.keyboard.type('tower');
  await page.getByRole('row').filter({ hasText: 'tower' }).first().waitFor();
  await page.keyboard.press('Enter');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
});
const setOffline = (offline) => (page) => page.context().setOffline(offline);

/**
 * Changes a picture on this device and at the origin while they have no contact, and shows the picture once the device has received the
 * origin's verdict. `prepare`, `changeOnDevice` and `changeAtOrigin` get the bytes of a picture that no place has yet, and its id.
 */
const causeConflict = (prepare, changeOnDevice, changeAtOrigin, verdict) => async (page) => {
  const name = `shot-${shots.length}.jpg`;
  const bytes = Buffer.concat([await sample(lighthouse), Buffer.from(name)]);
  const id = idOf(bytes);
  await prepare(id, bytes);
  await page.goto('/sync');
  await page.getByText(en('phase_current')).first().waitFor();
  await button(en('sync_work_offline'))(page);
  await changeOnDevice(page, id, bytes, name);
  await changeAtOrigin(id, bytes);
  await button(en('sync_work_offline'))(page);
  await page.getByText(en(verdict)).first().waitFor();
  await page.goto(`/${places.app}/inputs/${id}`);
  await page
    .getByText(en('mark_conflict_text', { n: '1' }))
    .first()
    .waitFor({ state: 'attached' });
};
const doNothing = async () => {};
const addAtOrigin = async (id, bytes) => {
  await callApi('POST', '/inputs', {
    inputs: [{ id, data: { image: { base64: bytes.toString('base64') }, concepts: [{ id: 'tower' }] } }],
  });
  await pollUntil(
    () => callApi('GET', `/inputs/${id}`),
    (answer) => answer.input?.status.code === 30000,
    id,
  );
};
const addOnDevice = async (page, _, buffer, name) => {
  await page.getByLabel(en('pictures_add'), { exact: true }).setInputFiles({ name, mimeType: 'image/jpeg', buffer });
  await page.getByRole('article', { name, exact: true }).waitFor();
};
const labelOnDevice = async (page, id) => {
  const labelField = page.getByLabel(en('sync_label_for', { name: id }), { exact: true });
  await labelField.fill('ruin');
  await labelField.press('Enter');
  await page.getByRole('article', { name: id, exact: true }).locator('.own', { hasText: 'ruin' }).waitFor();
};
const deleteAtOrigin = (id) => callApi('DELETE', `/inputs/${id}`);
const dismissConflict = async (page) => {
  await page.goto('/sync');
  await button(en('sync_accept'))(page);
  await page.getByText(en('sync_conflicts_none')).waitFor();
};

/** Changes the answers about a training, so that it never ends. Its progress is that of a large training after some seconds. */
const slowTraining = (path) => async (page) => {
  let startTime;
  const holdTraining = (version) => {
    Object.assign(version, {
      status: { code: 21103, description: '' },
      progress: Math.min(0.7, 0.3 + (Date.now() - startTime) / 10_000),
    });
  };
  await page.route(path, async (route) => {
    if (route.request().method() === 'POST') startTime = Date.now();
    const answer = await route.fetch();
    const json = await answer.json();
    const newestVersion = json.model_version ?? (json.model_versions?.length > 1 && json.model_versions[0]);
    if (startTime && newestVersion) holdTraining(newestVersion);
    await route.fulfill({ response: answer, json });
  });
};

/** Lets `handler` handle the requests that match `path`: it withholds the answer or returns an error. */
const handleRequests = (path, handler) => (page) => page.route(path, handler);
const pictures = /\/v2\/inputs(\/status|\/days)?(\?|$)/;
const serverError = {
  status: 500,
  headers: { 'X-Request-Id': '8f1c20aa' },
  json: { status: { code: 99009, description: 'Internal server issue', details: '' } },
};
const forbiddenError = {
  status: 403,
  json: { status: { code: 11007, description: '', details: 'the key lacks Models:Train, Models:Get' } },
};

/**
 * The states, by the name of the design's picture. The name lacks the colour, because the design may have a picture of a state in each
 * colour. `before`: the state exists only before the browser has a replica. `at`: a separate browser takes it, at this other server.
 * `copy: false`: a separate browser without a replica takes it.
 */
const states = {
  'first-run': { take: sequence(open('/'), waitForText(en('look_first_samples'))), before: true },
  loading: {
    take: sequence(
      handleRequests(pictures, () => {}),
      open('/:app/inputs'),
      (page) => page.waitForTimeout(2000),
    ),
    copy: false,
    live: true,
  },
  error: {
    take: sequence(
      handleRequests(pictures, (route) => route.fulfill(serverError)),
      open('/:app/inputs'),
      (page) => page.waitForTimeout(2000),
      waitForText(en('error_other')),
    ),
    copy: false,
    live: true,
  },
  forbidden: {
    take: sequence(
      handleRequests(/\/v2\/models/, (route) => route.fulfill(forbiddenError)),
      open('/:app/models'),
    ),
    copy: false,
  },
  'sign-in': { take: open('/sign-in'), at: 'signIn' },
  'sign-up': { take: open('/sign-up'), at: 'signIn' },
  verify: {
    take: async (page) => {
      await page.goto('/sign-up');
      await signUp(page, `mara${shots.length}@orchard.example`);
      await page.getByRole('heading', { name: en('code_label') }).waitFor();
      await page.getByLabel(en('digit', { number: '1' }), { exact: true }).click();
      await page.keyboard.type('407');
    },
    at: 'signIn',
  },
  look: { take: sequence(open('/'), click('main button:has-text("Bee on a petal")')) },
  'look.ar': { take: sequence(open('/'), click('main button:has-text("Bee on a petal")')), language: 'ar' },
  'look-fault': {
    take: sequence(
      open('/'),
      waitForRest,
      (page) => dropFiles(page.locator('main'), [['scan.jpg', 'no picture']]),
      waitForText(en('look_unreadable_do')),
    ),
  },
  inputs: { take: open('/:app/inputs') },
  'inputs-map': { take: sequence(open('/:app/inputs'), button(en('inputs_map'))), restore: button(en('inputs_grid')) },
  'inputs-upload': {
    take: sequence(open('/:app/inputs#upload'), async (page) => {
      await page.getByRole('dialog').waitFor();
      await dropFiles(page.locator('main'), [lighthouse, '05-castle-gate.jpg', ['gate.jpg', 'none']]);
      await page.getByRole('button', { name: en('inputs_clear_list'), exact: true }).waitFor();
    }),
  },
  none: { take: sequence(open(`/:app/inputs${q([birds, nowhere])}`), waitForText(en('inputs_remove_clause'))) },
  empty: { take: open('/:empty/inputs'), copy: false },
  conflict: {
    take: sequence(
      causeConflict(doNothing, addOnDevice, addAtOrigin, 'verdict_duplicate'),
      waitForText(en('input_conflict')),
    ),
    restore: dismissConflict,
  },
  deleted: {
    take: sequence(causeConflict(addAtOrigin, labelOnDevice, deleteAtOrigin, 'verdict_gone'), (page) =>
      page.locator('.deleted').waitFor(),
    ),
    restore: dismissConflict,
  },
  input: { take: sequence(open('/:app/inputs'), click(tile)) },
  search: { take: open(`/:app/search${q([outdoors, near, like])}`) },
  'search-box': { take: open(`/:app/search${q([outdoors, box])}`) },
  next: {
    take: sequence(open('/:app/next?model=bird-or-insect'), (page) => page.locator('main img[src]').first().waitFor()),
  },
  models: { take: open('/:app/models') },
  model: { take: open(model) },
  'model-training': {
    take: sequence(
      slowTraining(/\/v2\/models\/bird-or-insect\/versions/),
      open(model),
      (page) => page.getByRole('button', { name: en('models_train'), exact: true }).waitFor(),
      waitForRest,
      button(en('models_train')),
      (page) => page.locator('.progress').waitFor(),
      (page) => page.waitForTimeout(3000),
    ),
    copy: false,
    live: true,
  },
  concepts: { take: open('/:app/concepts') },
  applications: { take: open('/apps/:app') },
  'app-create': { take: open('/apps/:app#new') },
  'app-delete': { take: open('/apps/:app#delete') },
  key: { take: open('/apps/:app#key') },
  'key-once': {
    take: sequence(open('/apps/:app#key'), async (page) => {
      const dialog = page.getByRole('dialog');
      await dialog.getByText(en('group_all')).waitFor();
      await dialog.getByLabel(en('description'), { exact: true }).fill('Sorting line camera');
      await button(en('create_key'))(page);
      await page.getByText(en('key_once')).waitFor();
    }),
  },
  sync: { take: sequence(open('/sync'), waitForText(en('phase_current'))) },
  docs: { take: sequence(open('/docs'), (page) => page.locator('.opblock').first().waitFor()) },
  offline: {
    take: sequence(open('/:app/inputs'), waitForRest, setOffline(true), labelFirst, (page) =>
      page.getByText(en('sync_summary_offline')).first().waitFor({ state: 'attached' }),
    ),
    restore: setOffline(false),
  },
};

/** Starts a program, and reads its output until each of the wanted patterns has matched. */
async function startProgram(args, ...patterns) {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  const exit = new Promise((resolve) => child.once('exit', resolve));
  const matches = Array(patterns.length);
  await new Promise((resolve, reject) => {
    void exit.then(() => reject(new Error(`${args[0]} has ended`)));
    for (const output of [child.stdout, child.stderr])
      createInterface({ input: output }).on('line', (line) => {
        for (const [i, pattern] of patterns.entries()) matches[i] ??= line.match(pattern)?.[1];
        if (patterns.every((_, i) => matches[i])) resolve();
      });
  });
  return { matches, end: () => child.kill('SIGINT') && exit };
}

const data = await mkdtemp(join(tmpdir(), 'shots-'));
const demo = await startProgram(
  ['demo', '--edges', '1', '--listen', '127.0.0.1:0', '--data', join(data, 'data')],
  /^Sightline: (.*)$/,
  /^edge-1: (.*)$/,
);
const server = await startProgram(
  ['serve', '--listen', '127.0.0.1:0', '--data', join(data, 'sign-in'), '--log-format', 'text'],
  /msg=serving address=(\S+)/,
  /^\s+(http\S+\/sign-up\?setup=\S+)$/,
);
Object.assign(places, { origin: demo.matches[0], signIn: `http://${server.matches[0]}` });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: browserArgs });
const shots = [];
try {
  await mkdir(out, { recursive: true });
  await prepareServers();
  if (!stateNames || stateNames.includes('screenshot')) await shootForReadme();
  for (const round of rounds) await takeStates(round);
  await writeFile(join(out, 'index.html'), await comparisonPage());
  console.log(`${shots.length} pictures: ${join(out, 'index.html')}`);
} finally {
  await browser.close();
  await Promise.all([demo.end(), server.end()]);
  await rm(data, { recursive: true });
}
process.exit(); // browser.js reads the standard input, which would keep the process running

/** Signs up on the open page. */
async function signUp(page, email) {
  await page.getByLabel(en('name'), { exact: true }).fill('Mara');
  await page.getByLabel(en('email'), { exact: true }).fill(email);
  await page.getByLabel(en('password'), { exact: true }).fill('quiet-harbour-41');
  await button(en('create_account_do'))(page);
}

/** Finds the application of the demonstration, creates a second, empty one, and creates the first account of the other server. */
async function prepareServers() {
  const page = await browser.newPage();
  await page.goto(places.origin);
  await page.waitForFunction(() => localStorage.getItem('copies'), undefined, { timeout: 60_000 });
  places.app = await page.evaluate(() => JSON.parse(localStorage.getItem('copies'))[0].id);
  places.empty = await newApp({ page });
  callApi = caller(places.origin, await newKey({ page }, places.app));
  await page.goto(server.matches[1]);
  await signUp(page, 'ida@orchard.example');
  await waitForText(en('look_first_title'))(page);
  await page.close();
}

/** Takes all states in one size and colour. Each language has a separate browser with a replica. */
async function takeStates({ colorScheme, viewport, ...device }) {
  const openPage = async (role, language, storage = {}) => {
    const context = await browser.newContext({
      baseURL: places[role],
      viewport,
      colorScheme,
      ...device,
      locale: language,
      reducedMotion: 'reduce',
    });
    context.setDefaultTimeout(20_000);
    await context.addInitScript((entries) => {
      for (const [name, value] of Object.entries(entries)) localStorage.setItem(name, value);
    }, storage);
    return context.newPage();
  };
  const takePicture = async (page, name, state) => {
    try {
      await state.take(page);
      if (!state.live) await waitForRest(page);
    } catch (failure) {
      console.log(`${name}: ${failure.message.split('\n')[0]}`);
    }
    const file = `${name}-${colorScheme}-${viewport.width}.png`;
    await page.screenshot({ path: join(out, file) });
    shots.push({ name, colorScheme, viewport, file });
    await state.restore?.(page).catch((failure) => console.log(`${name}: ${failure.message.split('\n')[0]}`));
  };
  const selectedStates = Object.entries(states).filter(([name]) => !stateNames || stateNames.includes(name));
  for (const [name, state] of selectedStates.filter(([, s]) => s.at || s.copy === false)) {
    const storage = state.at ? {} : { declined: JSON.stringify([places.app, places.empty]) };
    const page = await openPage(state.at ?? 'origin', 'en', storage);
    await takePicture(page, name, state);
    await page.unrouteAll({ behavior: 'ignoreErrors' }); // ignores errors of calls that are not answered yet
    await page.context().close();
  }
  for (const language of ['en', 'ar']) {
    const languageStates = selectedStates.filter(
      ([, s]) => (s.language ?? 'en') === language && !s.at && s.copy !== false,
    );
    if (!languageStates.length) continue;
    const page = await openPage('origin', language);
    for (const [name, state] of languageStates) if (state.before) await takePicture(page, name, state);
    await page.goto('/sync');
    await page
      .getByText((await words(language))('phase_current'))
      .first()
      .waitFor({ timeout: 120_000 });
    for (const [name, state] of languageStates) if (!state.before) await takePicture(page, name, state);
    await page.context().close();
  }
}

/** Takes the picture in README.md: a sample and its predicted concepts. It throws if the page never shows them. */
async function shootForReadme() {
  const context = await browser.newContext({
    baseURL: places.origin,
    viewport: { width: 1600, height: 1000 },
    colorScheme: 'light',
    locale: 'en',
    reducedMotion: 'reduce',
  });
  await context.addInitScript(() => localStorage.setItem('tongues', 'en,es')); // every machine has fonts for these languages
  const page = await context.newPage();
  await page.goto('/look');
  await waitForRest(page);
  await page.getByRole('button', { name: 'Dragonfly, face on', exact: true }).first().click();
  await page.locator('.readout .words li').first().waitFor();
  await waitForRest(page);
  await page.evaluate(coarsen);
  const png = await page.screenshot({ path: join(out, 'screenshot.png') });
  if (png.length > 400_000) console.log(`screenshot.png has ${png.length} bytes, more than 400 kB`);
  await context.close();
}

/** Reduces the colours of the photos in a page and smooths the enlarged one, because the file is twice as large otherwise. */
function coarsen() {
  const steps = Array.from({ length: 32 }, (_, i) => i / 31).join(' ');
  const functions = ['R', 'G', 'B'].map((c) => `<feFunc${c} type="discrete" tableValues="${steps}"/>`).join('');
  const filter = (id, effect) =>
    `<filter id="${id}" x="0" y="0" width="1" height="1" color-interpolation-filters="sRGB">${effect}<feComponentTransfer>${functions}</feComponentTransfer></filter>`;
  const svg = `${filter('few', '')}${filter('smooth', '<feGaussianBlur stdDeviation="1.6" edgeMode="duplicate"/>')}`;
  document.body.insertAdjacentHTML('beforeend', `<svg width="0" height="0" style="position:absolute">${svg}</svg>`);
  for (const img of document.querySelectorAll('main img'))
    img.style.filter = `url(#${img.closest('.photo') ? 'smooth' : 'few'})`;
}

/** Waits until nothing on the page is loading or being drawn, the visible pictures have loaded, and the page shows the sync status. */
async function waitForRest(page) {
  await page.waitForFunction(
    (loadingTexts) => {
      const isVisible = (e) => {
        const { x, y, width, height } = e.getBoundingClientRect();
        const [across, down] = [x + width / 2, y + height / 2];
        return width > 0 && across > 0 && across < innerWidth && down > 0 && down < innerHeight;
      };
      const main = document.querySelector('main:has(h1)');
      return (
        main &&
        (!document.querySelector('aside .foot b') || document.querySelector('aside .foot b.num')) &&
        !document.querySelector('[aria-busy="true"], .opening') &&
        !loadingTexts.some((text) => main.innerText.includes(text)) &&
        [...document.images].every((image) => image.complete || image.loading === 'lazy') &&
        [...document.querySelectorAll('.counts:has(> .line)')].every((e) => e.querySelector('b')) &&
        [...document.querySelectorAll('main img:not([src])')].every(
          (e) => e.parentElement.querySelector('.away') || !isVisible(e),
        )
      );
    },
    [en('search_map_loading')],
    { timeout: 30_000 },
  );
  await page.evaluate(() => new Promise((resolve) => requestIdleCallback(resolve, { timeout: 2000 })));
}

/** Returns the HTML of a page with every picture next to its drawing, if there is one. */
async function comparisonPage() {
  const rows = shots.map(({ name, colorScheme, viewport, file }) => {
    const drawing = drawings && join(drawings, `${name}-${colorScheme}.png`);
    const hasDrawing = viewport.width === wide.width && drawing && existsSync(drawing);
    return `<tr><th>${name}<br>${colorScheme}, ${viewport.width} px</th><td><img src="${file}"></td><td>${hasDrawing ? `<img src="${relative(out, drawing)}">` : ''}</td></tr>`;
  });
  const style =
    'body{font:13px system-ui}img{width:45vw;height:auto;border:1px solid #ccc}th{text-align:start;vertical-align:top}';
  return `<!doctype html><meta charset="utf-8"><title>Pages and drawings</title><style>${style}</style><table>${rows.join('\n')}</table>\n`;
}
