// Steps without a network: the pages start, accept pictures, train a model and correct it, and store changes until they can be sent.
import { check, checkEqual, isTimed } from './browser.js';
import { caller, newKey } from './demonstration.js';
import { dropFiles, lighthouse, loadConceptIds, waitForCount } from './pictures.js';
import { setScreen, sizes } from './screens.js';

// The last picture of the second concept is mislabelled: it shows the first concept.
const lessons = [
  [
    'Living',
    ['07-hummingbird', '12-egrets-over-water', '16-oystercatcher', '21-dragonfly-face-on', '22-damselfly-on-a-leaf'],
  ],
  ['Made', ['26-green-roadster', '27-red-sports-car', '30-cruise-ship-at-the-quay', '04-old-camera', '09-sea-turtle']],
].map(([name, files]) => [name, files.map((file) => `${file}.jpg`)]);

export const testPicture = '40-red-whiskered-bulbul.jpg'; // shows the first concept, and no version is trained on it
export const [[living]] = lessons;

/** Returns the element with the replica's sync status in the side bar. */
export const syncStatus = (t) => t.page.locator('aside .foot a b').first();

/** Waits until the side bar shows that there is no network and that n changes are pending. */
const waitForQueue = (s, n) =>
  s.t.waitUntil(
    (texts) => texts.every((text) => document.querySelector('aside .foot a b')?.textContent.includes(text)),
    [s.m('sync_summary_offline'), s.m('sync_summary_queued', { n })],
  );

/** Waits until the device has a replica of the application, and creates a key for calls to other places. */
export async function joinApp(s) {
  const { t } = s;
  await t.waitUntil(() => localStorage.getItem('copies'));
  s.app = await t.page.evaluate(() => JSON.parse(localStorage.getItem('copies'))[0].id);
  s.key = await newKey(t, s.app);
  s.callApi = caller(s.origin, s.key);
  s.pictures = 42;
}

/** Opens the inputs, and waits until all samples are shown and the origin is connected. */
export async function openInputs(s) {
  const { t } = s;
  await t.page.goto(`/${s.app}/inputs`);
  await waitForCount(t, s.pictures);
  await t.waitFor(t.page.getByText(s.m('sync_summary_connected')));
}

export async function goOffline(s) {
  const { t } = s;
  await setScreen(s, 'ja', sizes.wide);
  await t.page.goto('/sync');
  if (s.addedName) await t.waitFor(t.page.getByRole('article', { name: s.addedName })); // added elsewhere
  await t.waitFor(t.page.locator('li[aria-current]', { hasText: s.m('phase_current') }));
  await t.waitFor(t.page.getByText(s.m('look_stored')));
  t.isOffline = true; // the origin does not answer the page
  await s.stopOrigin();
  await t.setOffline(true);
  s.serverAnswers = [];
  t.context.on('response', (r) => {
    if (t.isOffline && !r.fromServiceWorker() && /^\/(v2|console|hosted)\//.test(new URL(r.url()).pathname))
      s.serverAnswers.push(r.url());
  });
  check((await t.page.reload()).fromServiceWorker(), 'the page did not come from where it is kept');
  await t.page.locator(`aside nav a[href="/${s.app}/inputs"]`).click();
  await waitForCount(t, s.pictures);
  await dropFiles(t.page.locator('main'), [lighthouse], 'again');
  await waitForCount(t, ++s.pictures);
  await waitForQueue(s, 1);
  await t.checkAccessibility('a picture that was added');
  await t.page.locator('.drawer li a').first().click();
  const [id, names] = [(await loadConceptIds('en')).get('lighthouse'), await loadConceptIds('ja')];
  const [name] = [...names].find(([, conceptId]) => conceptId === id);
  await t.waitFor(t.page.locator('.words li .name').getByText(name, { exact: true }));
  await t.page.goto(`/${s.app}/inputs`);
  await waitForCount(t, s.pictures);
  await waitForQueue(s, 1);
  checkEqual(s.serverAnswers, [], 'answers from elsewhere');
}

export async function trainModel(s) {
  const { t } = s;
  await setScreen(s, 'ja', sizes.telephone);
  await t.page.goto(`/${s.app}/models#new`);
  const concepts = t.page.locator('.concepts .concept');
  for (const [i, [name, files]] of lessons.entries()) {
    await concepts.nth(i).locator('input').first().fill(name);
    await dropFiles(concepts.nth(i), files);
    await t.waitUntil((i) => document.querySelectorAll('.concept [data-count="5"]').length === i + 1, i);
  }
  await t.checkAccessibility('a new model with pictures');
  const codesHandle = await t.page.evaluateHandle(collectTrainingCodes);
  await t.button(s.m('models_train')).click();
  await t.waitFor(t.page.locator('[data-auc]'));
  const codes = await codesHandle.jsonValue();
  const [[first, startTime], [last, endTime]] = [codes[0], codes.at(-1)];
  checkEqual(last, 'judged', 'the end of a training');
  // The training runs in a worker, so a slow page may draw only after it has ended.
  if (codes.length > 1) checkEqual(first, '21103', 'the code of a version that is trained');
  if (isTimed) check(endTime - startTime <= 6000, `it took ${Math.round(endTime - startTime)} ms, want 2000`); // the limit is three times the goal
  await t.waitFor(t.link(s.m('models_version_show', { n: 1 })));
  // Pending are 1 earlier picture, 10 pictures, 2 concepts, and 3 operations for the model, its version and the result of its training.
  await waitForQueue(s, 1 + 10 + 2 + 3);
  for (const part of ['models_doubtful', 'models_confusion']) await t.waitFor(t.heading(s.m(part)));
  await t.waitFor(t.page.getByText(s.m('models_cut_off_promise', { value: '0.9' }), { exact: true }));
  for (const name of ['models_precision', 'models_recall', 'models_cut_off']) {
    const figures = await t.page.locator(`td[data-label="${s.m(name)}"]`).allTextContents();
    check(figures.length === 2 && figures.every((x) => /^[01]\.\d\d$/.test(x)), `${name}: ${figures}`);
  }
  s.model = new URL(t.page.url()).pathname;
  s.predictions = [await tryVersion(s, 1)]; // the predictions of each version, the oldest version first
  checkEqual(s.predictions, [living], 'what version 1 predicts');
  await t.checkAccessibility('a model');
  await t.checkWidth('a model');
  checkEqual(s.serverAnswers, [], 'answers from elsewhere');
}

/** In the page: collects the status codes of a training as the page shows them, and its evaluation, each with its time in ms. */
function collectTrainingCodes() {
  const codes = [];
  const addCode = () => {
    const code = document.querySelector('.progress [role="status"]')?.textContent.match(/21\d{3}/)?.[0];
    const state = document.querySelector('[data-auc]') ? 'judged' : code;
    if (state && state !== codes.at(-1)?.[0]) codes.push([state, performance.now()]);
  };
  new MutationObserver(addCode).observe(document.body, { subtree: true, childList: true, characterData: true });
  return codes;
}

/** Returns the element with the first concept that a version predicts. */
const firstConcept = (s) =>
  s.t.page
    .getByRole('list', { name: s.m('models_results') })
    .locator('li b')
    .first();

/** Predicts with a version for a picture outside its training set. Returns the name of the first concept. */
async function tryVersion(s, version) {
  const { t } = s;
  await dropFiles(t.page.locator('section[aria-labelledby="try-h"]'), [testPicture]);
  await t.waitFor(t.page.getByText(s.m('models_runs_device', { n: version })));
  await t.waitFor(firstConcept(s));
  return firstConcept(s).textContent();
}

/** Checks the prediction for the camera, which shows a picture outside the training set, and the rate of predictions. */
export async function analyseCamera(s) {
  const { t } = s;
  const part = t.page.locator('section[aria-labelledby="try-h"]');
  await t.button(s.m('models_camera'), part).click();
  await t.button(s.m('models_start_camera'), part).click();
  await t.waitUntil(
    (minimum) => Number(document.querySelector('[data-rate]')?.dataset.rate) >= minimum,
    isTimed ? 5 : 0.1,
  );
  checkEqual(await firstConcept(s).textContent(), living, 'what the camera shows');
  await t.button(s.m('models_stop_camera'), part).click();
  await t.waitForRemoval(t.page.locator('video'));
  checkEqual(s.serverAnswers, [], 'answers from elsewhere');
}

export async function correctLabel(s) {
  const { t } = s;
  await setScreen(s, 'en', sizes.desk);
  await t.page.goto(s.model);
  await t.button(s.m('models_check_all')).click();
  const dialog = t.dialog(s.m('models_check_title'));
  await t.waitFor(dialog);
  await t.checkAccessibility('the weakest pictures');
  const yesCount = await dialog.getByText(s.m('models_check_labelled', { n: '1', value: '#' }).split('1')[0]).count();
  await t.press(yesCount ? 'n' : 'y'); // this undoes the label
  await t.button(s.m('models_check_train'), dialog).click();
  await t.waitFor(t.page.locator('header .tag', { hasText: s.m('models_v', { n: 2 }) }));
  const toast = t.page.locator('.toast', { hasText: /^v2: (AUC \S+ points?, )?\d+ predictions? changed/ });
  await t.waitFor(toast);
  await t.waitFor(t.page.getByText(s.m('models_version_same_corrected', { n: '1' })));
  // The origin has seen neither version.
  const versions = t.page.getByRole('region', { name: s.m('models_versions') });
  checkEqual(await versions.getByText(s.m('mark_queued')).count(), 2, 'versions that wait for the origin');
  checkEqual(await versions.getByText(s.m('mark_confirmed')).count(), 0, 'versions that look confirmed');
  s.predictions.push(await tryVersion(s, 2));
  await t.link(s.m('models_version_show', { n: 1 })).click();
  checkEqual(await tryVersion(s, 1), living, 'what version 1 predicts');
  checkEqual(s.serverAnswers, [], 'answers from elsewhere');
}

export async function editOffline(s) {
  const { t } = s;
  await setScreen(s, 'en', sizes.wide);
  await t.page.goto(`/${s.app}/inputs`);
  await waitForCount(t, s.pictures);
  await t.waitFor(syncStatus(t));
  const initialCount = Number((await syncStatus(t).textContent()).match(/\d+/)[0]);
  const select = (name) => t.page.getByRole('gridcell', { name }).locator('.ck').click();
  for (const [i, name] of [/^Castle gate/, /^Beach in the wind/].entries()) {
    await select(name);
    await t.press('l');
    await t.type('tower');
    await t.waitFor(t.page.getByRole('row').filter({ hasText: 'tower' }));
    await t.press('Enter');
    await waitForQueue(s, initialCount + i + 1);
    await t.press('Escape');
    await t.press('Escape');
  }
  await select(/^Footballer/);
  await t.press('Delete');
  await waitForCount(t, --s.pictures);
  await waitForQueue(s, initialCount + 3);
  await t.reopenTab();
  await t.page.setViewportSize({ width: 2400, height: 1350 });
  await t.page.goto(`/${s.app}/inputs`);
  await waitForCount(t, s.pictures);
  await waitForQueue(s, initialCount + 3);
  await t.waitFor(t.page.getByRole('gridcell', { name: /^Castle gate.*tower/ }));
  checkEqual(s.serverAnswers, [], 'answers from elsewhere');

  // Meanwhile another person deletes one of them at the edge.
  const callApi = caller(s.edge, s.key);
  const { inputs } = await callApi('GET', '/inputs?per_page=100');
  s.conflictId = inputs.find((input) => input.data.metadata?.name === 'Beach in the wind').id;
  checkEqual((await callApi('DELETE', `/inputs/${s.conflictId}`)).status.code, 10000, 'a deletion at the edge');
}
