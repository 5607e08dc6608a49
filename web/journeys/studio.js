// The first minutes of a newcomer: from the pictures in any language over a search to a model of their own, without a network.
import { readFile } from 'node:fs/promises';
import { check, journey, same, shell, words } from './browser.js';
import { caller, demonstration, newKey, until } from './demonstration.js';

const en = await words('en');
const samples = new URL('../samples/', import.meta.url);
const lighthouse = '42-lighthouse-in-the-sea.jpg';
// One picture of the second concept is of the first.
const lessons = [
  [
    'Living',
    ['07-hummingbird', '12-egrets-over-water', '16-oystercatcher', '21-dragonfly-face-on', '22-damselfly-on-a-leaf'],
  ],
  ['Made', ['26-green-roadster', '27-red-sports-car', '30-cruise-ship-at-the-quay', '04-old-camera', '09-sea-turtle']],
].map(([name, files]) => [name, files.map((file) => `${file}.jpg`)]);
const sizes = [
  [360, 740],
  [2400, 1350],
  [1440, 900],
];

const tiles = (t) => t.page.locator('[role=gridcell][data-cell][aria-label]');
const q = (ands) => `?q=${encodeURIComponent(JSON.stringify(ands))}`;
/** Waits until so many tiles are there. */
const count = (t, n) =>
  t.until((n) => document.querySelectorAll('[role=gridcell][data-cell][aria-label]').length === n, n);

async function size(t, [width, height]) {
  await t.page.setViewportSize({ width, height });
}
/** Drops samples somewhere; with more behind its end each is another file. */
async function drop(target, files, more = '') {
  const all = await Promise.all(
    files.map(async (name) => {
      const bytes = Buffer.concat([await readFile(new URL(name, samples)), Buffer.from(more)]);
      return { name, base64: bytes.toString('base64') };
    }),
  );
  await target.evaluate((target, all) => {
    const data = new DataTransfer();
    for (const { name, base64 } of all) {
      const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
      data.items.add(new File([bytes], name, { type: 'image/jpeg' }));
    }
    for (const kind of ['dragenter', 'dragover', 'drop'])
      target.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
  }, all);
}

async function arrives(s) {
  const { t } = s;
  await size(t, [2400, 1350]);
  await t.page.goto('/');
  await t.seen(t.heading(en('look_first_title')));
  await t.until(() => localStorage.getItem('copies'));
  s.app = await t.page.evaluate(() => JSON.parse(localStorage.getItem('copies'))[0].id);
  s.key = await newKey(t, s.app);
  s.ask = caller(s.origin, s.key);
  await t.page.goto(`/${s.app}/inputs`);
  await count(t, 42);
  await t.seen(t.page.getByText(en('truth_connected')));
  await t.look('the pictures');
  await t.button(en('inputs_map')).click();
  await t.seen(t.page.locator('.pins .pin'));
  await t.look('the map of the pictures');
  await t.button(en('inputs_grid')).click();
  await tiles(t).first().click();
  await t.until(() => document.querySelectorAll('.words li .name bdi').length >= 3);
  await t.look('a picture');
}

/** The ids of the concepts that are seen, by their names in a language. */
async function seen(t, code) {
  const table = await readFile(new URL(`../../models/general-v1.3/names/${code}.tsv`, import.meta.url), 'utf8');
  const ids = new Map(
    table
      .trim()
      .split('\n')
      .map((line) => line.split('\t').reverse()),
  );
  const names = await t.page.locator(`.words li .name bdi[lang="${code}"]`).allTextContents();
  return names.map((name) => ids.get(name));
}

async function speaks(s) {
  const { t } = s;
  await size(t, sizes[2]);
  const first = await seen(t, 'en');
  check(first.length >= 3 && first.every(Boolean), `seen: ${first}`);
  await t.page.evaluate(() => {
    globalThis.sameOld = true;
  });
  let [said, name] = [en, 'English'];
  for (const [code, own, dir] of [
    ['ja', '日本語', 'ltr'],
    ['ar', 'العربية', 'rtl'],
    ['en', 'English', 'ltr'],
  ]) {
    await t.button(said('language_is', { language: name })).click();
    const dialog = t.dialog(said('language'));
    await dialog.getByText(own, { exact: true }).first().click();
    await t.gone(dialog);
    [said, name] = [await words(code), own];
    await t.until(
      ([code, n]) => document.querySelectorAll(`.words li .name bdi[lang="${code}"]`).length === n,
      [code, first.length],
    );
    same(await seen(t, code), first, `what is seen, in ${code}`);
    const page = await t.page.evaluate(() => [document.documentElement.dir, globalThis.sameOld]);
    same(page, [dir, true], 'direction, and whether the page stayed');
    await t.look(`a picture in ${code}`);
  }
}

/** How many hits are above the cut-off, as the page says. */
const hits = (t) => t.page.locator('.cutoff b').first().textContent().then(Number.parseInt);

async function finds(s) {
  const { t } = s;
  const base64 = (await readFile(new URL(lighthouse, samples))).toString('base64');
  const added = { id: 'same-file', data: { image: { base64 }, metadata: { name: 'The same file' } } };
  same((await s.ask('POST', '/inputs', { inputs: [added] })).status.code, 10000, 'a copy of a picture');
  await t.page.goto(`/${s.app}/search`);
  await until(
    () => t.page.locator('li[data-id="same-file"]').count(),
    (n) => n === 1,
    'the picture that was added elsewhere',
  );
  await t.page.locator('li[data-id="same-file"] .tile').hover();
  await t.page.locator('li[data-id="same-file"] .mag').click();
  const range = t.page.locator('input.range');
  await t.seen(range);
  await t.until(
    (words) => [...document.querySelectorAll('.why')].filter((one) => one.textContent === words).length === 2,
    en('search_same_file'),
  );
  const scores = (await t.page.locator('.score').allTextContents()).map(Number);
  same(scores.slice(0, 2), [1, 1], 'the scores of the same file');
  same(
    scores,
    [...scores].sort((a, b) => b - a),
    'the order of the scores',
  );
  const before = await hits(t);
  await range.fill('0');
  await t.until((n) => Number.parseInt(document.querySelector('.cutoff b').textContent, 10) > n, before);
  same(await hits(t), 43, 'hits without a cut-off');
  await t.look('pictures that are alike');
}

/** What must be the same of two answers: all but the ids and times of the answer itself, and where it came from. */
function told({ status, hits }, place) {
  return JSON.stringify([status, hits?.map(({ score, input }) => [score, input])]).replaceAll(place, '');
}

async function asks(s) {
  const { t, edge } = s;
  await t.page.goto(`/${s.app}/search${q([{ output: { data: { concepts: [{ name: 'outdoors' }] } } }])}`);
  await t.seen(t.page.locator('li[data-id]'));
  await t.seen(t.page.locator('.pins .pin'));
  await t.press('c'); // a circle, in the middle of the map
  await t.until(() => decodeURIComponent(location.search).includes('withinKilometers'));
  await t.seen(t.page.locator('.chip').nth(1));
  await t.seen(t.page.locator('li[data-id]'));
  const first = t.page.locator('li[data-id]').first();
  await first.locator('.tile').hover();
  await first.locator('.mag').click();
  await t.seen(t.page.locator('.chip').nth(2));
  await t.seen(t.page.locator('input.range'));
  await t.look('three clauses');
  const command = await t.copied(t.button(en('copy_what', { what: en('search_request') })));
  const run = (text) => shell(text, { SIGHTLINE_KEY: s.key });
  const here = await run(command);
  same([here.status, here.answer.status.code], [200, 10000], 'the answer to the request');
  check(here.answer.hits.length > 0, 'no hit');
  await until(
    async () => told((await run(command.replaceAll(s.origin, edge))).answer, edge),
    (there) => there === told(here.answer, s.origin),
    'the answer of the edge',
  );
}

/** Waits until so many changes wait. */
const queued = (t, n) =>
  t.until(
    (words) => document.querySelector('aside .foot a b')?.textContent === words,
    `${en('truth_offline')}, ${en('truth_queued', { n })}`,
  );

async function leaves(s) {
  const { t } = s;
  await t.page.goto('/sync');
  await t.seen(t.page.getByText(en('phase_current')));
  await t.seen(t.page.getByText(en('look_stored')));
  await t.offline(true);
  s.answered = [];
  t.context.on('response', (r) => {
    if (t.away && !r.fromServiceWorker() && /^\/(v2|console|hosted)\//.test(new URL(r.url()).pathname))
      s.answered.push(r.url());
  });
  await size(t, [2400, 1350]);
  await t.page
    .locator('aside nav')
    .getByRole('link', { name: en('studio_inputs') })
    .click();
  await count(t, 43);
  await drop(t.page.locator('main'), [lighthouse], 'again');
  await count(t, 44);
  await queued(t, 1);
  await t.look('a picture that was added');
  await t.page.locator('.drawer li a').first().click();
  await t.seen(t.page.locator('.words li .name', { hasText: 'lighthouse' }));
  await t.page.goto(`/${s.app}/inputs`);
  await count(t, 44);
  await queued(t, 1);
  same(s.answered, [], 'answers from elsewhere');
}

async function teaches(s) {
  const { t } = s;
  await size(t, sizes[2]);
  await t.page.goto(`/${s.app}/models#new`);
  const concepts = t.page.locator('.concepts .concept');
  for (const [i, [name, files]] of lessons.entries()) {
    await concepts.nth(i).locator('input').first().fill(name);
    await drop(concepts.nth(i), files);
    await t.until((i) => document.querySelectorAll('.concept [data-count="5"]').length === i + 1, i);
  }
  await t.look('a new model with pictures');
  await t.button(en('models_train')).click();
  await t.seen(t.page.locator('[data-auc]'));
  s.model = new URL(t.page.url()).pathname;
  await tries(t, 1);
  await t.look('a model');
  same(s.answered, [], 'answers from elsewhere');
}

/** Has a version read a picture that it has not learned from. */
async function tries(t, version) {
  await drop(t.page.locator('section[aria-labelledby="try-h"]'), ['40-red-whiskered-bulbul.jpg']);
  await t.seen(t.page.getByText(en('models_runs_here', { n: version })));
  const rows = t.page.getByRole('list', { name: en('models_results') }).locator('li b');
  await t.seen(rows);
  same(await rows.first().textContent(), lessons[0][0], 'what it sees first');
}

async function corrects(s) {
  const { t } = s;
  await t.button(en('models_check_all')).click();
  const dialog = t.dialog(en('models_check_title'));
  await t.seen(dialog);
  await t.look('the weakest pictures');
  const yes = await dialog.getByText(en('models_check_said', { n: '1', value: '#' }).split('1')[0]).count();
  await t.press(yes ? 'n' : 'y'); // what was said of it is taken back
  await t.button(en('models_check_train'), dialog).click();
  await t.seen(t.page.locator('header .tag', { hasText: en('models_v', { n: 2 }) }));
  await t.link(en('models_version_show', { n: 1 })).click();
  await tries(t, 1);
  same(s.answered, [], 'answers from elsewhere');
}

await journey((arrive) =>
  demonstration(1, async ({ origin, edges: [edge] }) => {
    const t = await arrive();
    const s = { t, edge, origin };
    await t.step('there are pictures, with what is in them and where they were', () => arrives(s));
    await t.step('everything is in Japanese and Arabic at once', () => speaks(s));
    await t.step('a picture finds its like, and its copy', () => finds(s));
    await t.step('place, concept and likeness are one request, here and at an edge', () => asks(s));
    await t.step('without a network it starts, and takes a picture', () => leaves(s));
    await t.step('a model is taught, trained, judged and tried', () => teaches(s));
    await t.step('what was wrong is corrected, and it is trained again', () => corrects(s));
  }),
);
