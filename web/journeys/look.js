// Tests the Look page: the browser analyses and stores pictures itself, and keeps working without a network.
import { check, checkEqual, isTimed, journey, words } from './browser.js';
import { dropFiles, lighthouse, loadConceptIds, samples } from './pictures.js';

const en = await words('en');
const edge = process.env.EDGE;

await journey(async (arrive) => {
  const guest = await arrive({ camera: true, otherOrigins: [edge] });
  await guest.step('The page shows the progress of loading the recogniser', () => waitForRecogniser(guest));
  await guest.step('The browser analyses a dropped picture itself', () => analysePicture(guest));
  await guest.step('The page shows the names of concepts in another language at once', () => changeLanguages(guest));
  await guest.step('Browser, origin and edge compute the same hashes', () => compareHashes(guest));
  await guest.step('The page explains that it cannot read a dropped file', () => dropBadFiles(guest));
  await guest.step('The browser trains two concepts and recognises them', () => trainConcepts(guest));
  await guest.step('The page lists the stored pictures that are similar', () => findSimilar(guest));
  await guest.step('The browser analyses the pictures of the running camera', () => analyseCamera(guest));
  await guest.step('The browser can install the page as an app', () => checkInstallability(guest));
  await guest.step('The keys of the page do the same as its buttons', () => pressShortcuts(guest));
  await guest.step('Without a network, the page starts with all its pictures and concepts', () => startOffline(guest));
  await guest.step('The page deletes all its data if the person confirms that', () => deleteEverything(guest));

  const serverUser = await arrive();
  await serverUser.step('The server analyses pictures until the recogniser has loaded, if the person wants that', () =>
    analyseAtServer(serverUser),
  );
  await serverUser.context.close();

  const noCameraUser = await arrive({ storage: { language: 'ar' } });
  await noCameraUser.step('In Arabic, the page reports that it may not use the camera', () => denyCamera(noCameraUser));
});

/** Reads the concepts that the page shows for a picture: the name, or its translation into `language`, and the value. */
function readConcepts(t, language) {
  return t.page.locator('.readout .words li').evaluateAll(
    (rows, language) =>
      rows.map((row) => ({
        name: row.querySelector(language ? `[lang="${language}"]` : '.name').textContent,
        value: Number(row.querySelector('.v').textContent.replace(',', '.')),
      })),
    language,
  );
}

/** Waits until a picture has been recognised and its concepts appear in every chosen language. */
async function awaitAnalysis(t) {
  await t.waitFor(t.page.locator('.readout .words li'));
  await t.waitUntil(() => !document.querySelector('.readout [aria-busy="true"]'));
}

/** Drops files on the area that shows the picture. */
function dropOnStage(t, ...files) {
  return dropFiles(t.page.locator('.stage'), files);
}

async function waitForRecogniser(t) {
  const requestPaths = [];
  t.context.on('request', (request) => requestPaths.push(new URL(request.url()).pathname));
  let release;
  const gate = new Promise((resolve) => {
    release = resolve;
  });
  const network = /\/runtime\/network-/;
  await t.page.route(network, (route) => gate.then(() => route.continue()));
  await t.page.goto('/look');
  await t.waitFor(t.heading(en('look')));
  const bar = t.page.getByRole('progressbar', { name: en('look_loading') });
  await t.waitFor(bar);
  await t.checkAccessibility('the recogniser on its way');
  await t.button('Bee on a petal', t.page.locator('.film')).click(); // the page shows it, and recognises it later
  await t.waitFor(t.page.locator('.facts', { hasText: 'Bee on a petal' }));
  await dropOnStage(t, lighthouse);
  await t.waitFor(t.page.locator('.facts', { hasText: lighthouse }));
  checkEqual(await t.page.getByRole('alert').count(), 0, 'alerts about pictures that came early');
  release();
  await awaitAnalysis(t);
  await t.page.unroute(network);
  await t.page.reload();
  await t.waitForRemoval(bar);
  await t.waitFor(t.heading(en('train_title')));
  check(
    requestPaths.some((path) => /^\/runtime\/network-\w+\.plan$/.test(path)),
    `no network was loaded: ${requestPaths.filter((p) => p.startsWith('/runtime'))}`,
  );
  await t.checkAccessibility('an empty page');
  t.requests = requestPaths;
}

async function analyseAtServer(t) {
  const sent = []; // calls with a picture
  t.context.on('request', (request) => {
    if (/"base64"/.test(request.postData() ?? '')) sent.push(new URL(request.url()).pathname);
  });
  let release;
  const gate = new Promise((resolve) => {
    release = resolve;
  });
  await t.page.route(/\/runtime\/network-/, (route) => gate.then(() => route.continue()).catch(() => {}));
  const choice = t.page.getByRole('checkbox', { name: en('look_use_server') });
  const lead = t.page.locator('main header p');
  const call = '/v2/models/aaa03c23b3724a16a56b629203edc62c/outputs';
  await t.page.goto('/look');
  await t.waitFor(choice);
  checkEqual(await lead.textContent(), en('look_lead'), 'the lead before the choice');
  await dropOnStage(t, lighthouse);
  await t.waitFor(t.page.locator('.facts', { hasText: lighthouse }));
  await t.checkAccessibility('the offer of the server');
  checkEqual(sent, [], 'calls with a picture before the choice');
  await choice.check();
  await awaitAnalysis(t);
  await t.waitFor(t.page.getByText(en('look_predicted_origin')));
  const rows = await readConcepts(t);
  check(
    rows.slice(0, 8).some((row) => row.name === 'lighthouse'),
    `the server sees ${rows.map((row) => row.name)}`,
  );
  checkEqual(await lead.textContent(), en('look_use_server_text'), 'the lead after the choice');
  checkEqual(sent, [call], 'calls with a picture after the choice');
  await t.checkAccessibility('the answer of the server');
  await t.page.reload();
  await t.waitFor(choice);
  check(await choice.isChecked(), 'the choice is forgotten');
  await dropOnStage(t, lighthouse);
  await t.waitFor(t.page.getByText(en('look_predicted_origin')));
  release();
  await t.waitFor(t.page.getByText(en('look_predicted_device')));
  await t.waitForRemoval(choice);
  checkEqual(await lead.textContent(), en('look_lead'), 'the lead with the recogniser');
  await awaitAnalysis(t);
  checkEqual(sent, [call, call], 'calls with a picture');
}

async function analysePicture(t) {
  t.requests.length = 0;
  await dropOnStage(t, lighthouse);
  await awaitAnalysis(t);
  const rows = await readConcepts(t);
  check(
    rows.slice(0, 8).some((row) => row.name === 'lighthouse'),
    `it sees ${rows.map((row) => row.name)}`,
  );
  checkEqual(
    rows.map((row) => row.value),
    rows.map((row) => row.value).sort((a, b) => b - a),
    'the order of the values',
  );
  await t.waitFor(t.page.getByText(en('look_predicted_device')));
  await t.page.getByRole('button', { name: /^Show \d+ lower/ }).click();
  check((await readConcepts(t)).length > rows.length, 'there are no lower concepts');
  await t.button(en('look_fewer')).click();
  await t.page.locator('.readout .words li button').first().hover();
  await t.waitFor(t.page.locator('.photo canvas'));
  await t.waitFor(t.page.getByText(en('look_heatmap', { concept: rows[0].name })));
  checkEqual(
    t.requests.filter((path) => /^\/(v2(?!\/(sync\/|inputs\/status$|models$))|hosted)/.test(path)), // without those of the side bar and the replica
    [],
    'calls to the server',
  );
  await t.checkAccessibility('a picture that was read');
  const teachButton = t.button(en('train_title'));
  const { y } = await teachButton.boundingBox();
  check(y < 800, `nothing on the first screen says that it can be taught: ${y}`);
  await teachButton.click();
  checkEqual(await t.focusLabel(), en('train_concept_name', { number: '1' }), 'what comes first in teaching');
}

async function changeLanguages(t) {
  const englishIds = await loadConceptIds('en');
  const ids = (await readConcepts(t)).map((row) => englishIds.get(row.name));
  for (const code of ['ja', 'ru']) {
    if (code !== 'ja') await t.field(en('look_names_more')).selectOption(code);
    await awaitAnalysis(t);
    const translatedIds = await loadConceptIds(code);
    checkEqual(
      (await readConcepts(t, code)).map((row) => translatedIds.get(row.name)),
      ids,
      `what the names in ${code} stand for`,
    );
  }
  checkEqual(
    await t.page.locator('.heads button').allTextContents(),
    ['Русский', 'English', '日本語'],
    'the languages beside each other',
  );
  await t.button('English').click();
  await awaitAnalysis(t);
  checkEqual(await t.page.locator('.heads [aria-pressed="true"]').textContent(), 'English', 'the language in front');
}

/** Makes a receipt, compares it with this server and with an edge, and checks the hashes in it. */
async function compareHashes(t) {
  const part = t.page.getByRole('region', { name: en('consistency_title') });
  await t.button(en('consistency_make'), part).click();
  await t.waitFor(part.getByText(en('consistency_browser')));
  await t.button(en('consistency_compare'), part).click();
  await t.waitFor(part.getByText(en('consistency_equal', { equal: '2', all: '2' })));
  if (edge) {
    await part.getByText(en('consistency_elsewhere')).click();
    await t.field(en('consistency_address')).fill('nowhere at all');
    check(await t.button(en('consistency_other'), part).isDisabled(), 'the comparison is offered without a key');
    await t.field(en('consistency_key')).fill(process.env.EDGE_KEY);
    await t.button(en('consistency_other'), part).click();
    await t.waitFor(part.getByText(en('consistency_address_wrong')));
    await t.field(en('consistency_address')).fill(new URL(edge).host);
    await t.button(en('consistency_other'), part).click();
    await t.waitFor(part.getByText(en('consistency_equal', { equal: '3', all: '3' })));
  }
  const hashes = await part.locator('code').evaluateAll((codes) => codes.map((code) => code.title));
  const places = edge ? 3 : 2;
  checkEqual(hashes.length, 2 * places, 'hashes');
  check(
    hashes.every((hash) => /^[0-9a-f]{64}$/.test(hash)),
    `hashes ${hashes}`,
  );
  checkEqual(new Set(hashes).size, 2, 'different hashes');
  await t.checkAccessibility('a receipt');
  const keys = await t.page.evaluate(async () => {
    const session = await (await fetch('/console/apps')).json();
    return (await (await fetch(`/console/apps/${session.apps[0].id}/keys`)).json()).keys.length;
  });
  checkEqual(keys, 1, 'keys that are left'); // the key of the new data folder
}

async function dropBadFiles(t) {
  await dropOnStage(t, ['notes.jpg', 'no picture at all']);
  await t.waitFor(t.page.getByRole('alert').getByText(en('look_unreadable_do')));
  await t.checkAccessibility('a file that is no picture');
  // A file that is dropped outside the drop area: without the page's handler, the browser would open the file and leave the page.
  const unhandledEvents = await t.page.evaluate(() => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File(['x'], 'x.jpg', { type: 'image/jpeg' }));
    const target = document.querySelector('nav a');
    return ['dragover', 'drop'].filter((kind) =>
      target.dispatchEvent(new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true })),
    );
  });
  checkEqual(unhandledEvents, [], 'what is left to the browser');
}

async function trainConcepts(t) {
  await t.button(en('train_samples')).click();
  await t.waitUntil(() =>
    [...document.querySelectorAll('.lesson')].every((lesson) => lesson.querySelectorAll('li').length === 4),
  );
  const lesson = t.page.locator('.lesson').first();
  await dropFiles(lesson, [lighthouse]);
  await t.button(en('train_remove', { name: lighthouse }), lesson).click();
  await t.waitUntil(() => document.querySelectorAll('.lesson li').length === 8);
  checkEqual(await t.page.locator('.drop.over').count(), 0, 'places that go on waiting for what was dropped elsewhere');
  await t.checkAccessibility('two concepts with pictures');
  const train = t.button(en('train'));
  await train.click();
  const message = t.page.getByText(en('train_done', { time: '#' }).split('#')[0]);
  await t.waitFor(message);
  const seconds = Number((await message.textContent()).match(/[\d.]+/)[0]);
  if (isTimed) check(seconds <= 6, `training took ${seconds} s, want 2`); // the limit is three times the goal
  for (const [title, first] of [
    ['Pelicans', en('train_sample_bird')],
    ['Damselfly on a leaf', en('train_sample_insect')],
  ]) {
    await t.button(title, t.page.locator('.film')).click();
    await t.waitFor(t.page.locator('.facts', { hasText: title }));
    await awaitAnalysis(t);
    const rows = await readConcepts(t);
    checkEqual([rows[0].name, rows.length], [first, 2], `what was taught, in ${title}`);
  }
  await t.checkAccessibility('what was taught, seen');
}

async function findSimilar(t) {
  const part = t.page.locator('section[aria-labelledby="similar"]');
  await t.button(en('pictures_add_samples'), part).click();
  await t.waitFor(part.getByText(en('count_pictures', { n: '43' }).replace('43', '42'))); // the lighthouse is one of the samples
  const listHits = () =>
    part
      .locator('li')
      .evaluateAll((rows) =>
        rows.map((row) => [row.querySelector('button').ariaLabel, row.querySelector('.score').textContent.trim()]),
      );
  await t.waitUntil((word) => document.querySelector('#similar').textContent === word, en('similar_title'));
  const found = await listHits();
  checkEqual(found[0], ['Damselfly on a leaf', en('similar_same')], 'the most alike');
  checkEqual(found[1][0], 'Dragonfly, face on', 'the next');
  const scores = found.slice(1).map(([, score]) => Number(score));
  checkEqual(
    scores,
    [...scores].sort((a, b) => b - a),
    'the order',
  );
  const next = 'Dragonfly, face on';
  await part.getByRole('button', { name: next }).click();
  await t.waitFor(t.page.locator('.facts', { hasText: next }));
  await awaitAnalysis(t);
  await t.waitUntil(() => document.querySelector('section[aria-labelledby="similar"] .score'));
  checkEqual((await listHits())[0], [next, en('similar_same')], 'after a step to it');
  // A picture that is selected below is shown above.
  await t.waitUntil(() => document.querySelector('.photo').getBoundingClientRect().top >= 0);
  await t.checkAccessibility('similar pictures');
}

async function analyseCamera(t) {
  await t.button(en('look_camera')).click();
  await t.waitUntil(
    (minimum) => Number(document.querySelector('[data-rate]')?.dataset.rate) >= minimum,
    isTimed ? 5 : 0.1,
  );
  await t.checkAccessibility('the camera');
  await t.button(`${en('train_add_concept')}`).click();
  const lesson = t.page.locator('.lesson').nth(2);
  await lesson.getByRole('textbox').fill('Clock');
  for (let n = 1; n <= 3; n++) {
    await lesson.getByRole('button', { name: en('pictures_add_camera') }).click();
    await t.waitUntil((n) => document.querySelectorAll('.lesson')[2].querySelectorAll('li').length === n, n);
  }
  await t.button(en('train')).click();
  await t.waitUntil((name) => document.querySelector('.readout .words .name')?.textContent === name, 'Clock');
  await t.button(en('camera_take')).click();
  await t.waitFor(t.page.locator('.photo img'));
  await awaitAnalysis(t);
  checkEqual((await readConcepts(t))[0].name, 'Clock', 'what the picture shows');
  checkEqual(await t.page.locator('video').count(), 0, 'the camera after a picture');
}

async function checkInstallability(t) {
  const cdp = await t.context.newCDPSession(t.page);
  const { installabilityErrors } = await cdp.send('Page.getInstallabilityErrors');
  // A browser window of a test is incognito, and Chromium reports that as an error. All other requirements must be met.
  checkEqual(
    installabilityErrors.map((error) => error.errorId).filter((id) => id !== 'in-incognito'),
    [],
    'what keeps it from being installed',
  );
}

async function startOffline(t) {
  await t.waitFor(t.page.getByText(en('look_stored')));
  await t.setOffline(true);
  checkEqual(
    await t.page.evaluate(() =>
      fetch('/healthz').then(
        () => 'reached',
        () => 'not reached',
      ),
    ),
    'not reached',
    'the server',
  );
  await t.page.reload();
  await t.waitFor(t.heading(en('similar_title')).or(t.heading(en('device_pictures'))));
  await t.waitFor(t.page.getByText(en('look_offline')));
  await t.waitFor(t.page.getByText(en('count_pictures', { n: '46' }))); // three of them are frames of the camera, and one is its picture
  checkEqual(
    await t.page.locator('.lesson input:not([type])').evaluateAll((inputs) => inputs.map((input) => input.value)),
    [en('train_sample_bird'), en('train_sample_insect'), 'Clock'],
    'what was taught',
  );
  await t.waitFor(t.page.getByRole('tab', { name: en('look_custom_model') }));
  await t.button('Lighthouse in the sea', t.page.locator('.film')).click();
  await awaitAnalysis(t);
  check(
    (await readConcepts(t)).some((row) => row.name === 'lighthouse'),
    'the lighthouse is not seen',
  );
  await checkSpeed(t);
  const part = t.page.getByRole('region', { name: en('consistency_title') });
  await t.button(en('consistency_make'), part).click();
  await t.waitFor(part.getByText(en('consistency_browser')));
  await t.field(en('consistency_key')).fill('0123456789abcdef0123456789abcdef');
  await t.button(en('consistency_other'), part).click();
  await t.waitFor(part.getByText(en('consistency_sum', { equal: '1', all: '1', missing: '1' })));
  await t.waitFor(part.getByText(en('consistency_offline')));
  await t.checkAccessibility('a page without a network');
  await t.page.locator('.scroll').evaluate((element) => element.scrollTo(0, 0));
  await t.page.setViewportSize({ width: 360, height: 740 });
  await t.checkWidth('a page without a network');
  await t.page.setViewportSize({ width: 1200, height: 800 });
  await t.setOffline(false);
  await t.page.reload();
  await t.waitFor(t.page.getByText(en('look_stored')));
  await t.waitForRemoval(t.page.getByText(en('look_offline')));
}

/** Drops some pictures, and checks the time of the fastest one. */
async function checkSpeed(t) {
  const times = [];
  for (const name of ['35-slice-of-pizza.jpg', '36-glacier-and-rock.jpg', '38-horses-in-salzburg.jpg']) {
    const duration = t.page.evaluate(timeAnalysis, name);
    await dropOnStage(t, name);
    times.push(await duration);
  }
  const minTime = Math.min(...times);
  if (isTimed) check(minTime <= 3000, `it took ${Math.round(minTime)} ms at least, want 1000`); // the limit is three times the goal
}

/** Measures the time in ms from a drop until the page shows the picture and its concepts. */
function timeAnalysis(name) {
  let startTime;
  addEventListener('drop', () => (startTime = performance.now()), { once: true, capture: true });
  return new Promise((resolve) => {
    const observer = new MutationObserver(() => {
      const isShown = document.querySelector('.facts b')?.textContent === name;
      if (
        !isShown ||
        !document.querySelector('.readout .words li') ||
        document.querySelector('.readout [aria-busy="true"]')
      )
        return;
      observer.disconnect();
      resolve(performance.now() - startTime);
    });
    observer.observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
  });
}

async function pressShortcuts(t) {
  t.page.on('filechooser', () => {}); // intercepts file dialogs from now on, not only while waitForEvent waits
  await t.page.goto('/look');
  await t.waitFor(t.heading(en('train_title')));
  const fileChooser = t.page.waitForEvent('filechooser');
  await t.press('o');
  await (await fileChooser).setFiles(new URL(lighthouse, samples).pathname);
  await awaitAnalysis(t);
  await t.press('c');
  await t.waitFor(t.page.locator('video'));
  await t.press('c');
  await t.waitFor(t.page.getByText(en('look_nothing_yet')));
  await t.button('Hummingbird', t.page.locator('.film')).focus();
  await t.press('Enter');
  await awaitAnalysis(t);
  await t.press('Tab');
  checkEqual(await t.focusLabel(), 'Beach in the wind', 'the next stop');
}

async function deleteEverything(t) {
  await t.button(en('device_pictures_delete')).click();
  const question = t.dialog(en('device_delete_title'));
  await t.waitFor(question);
  checkEqual(await t.focusLabel(), en('delete_cancel'), 'the answer that changes nothing');
  await t.checkAccessibility('the question before all is forgotten');
  await t.button(en('device_delete_do'), question).click();
  await t.waitForRemoval(question);
  await t.waitFor(t.heading(en('device_pictures_none')));
  await t.page.reload();
  await t.waitFor(t.heading(en('device_pictures_none')));
  checkEqual(
    await t.page.locator('.lesson input:not([type])').evaluateAll((inputs) => inputs.map((input) => input.value)),
    ['', ''],
    'what is taught',
  );
}

async function denyCamera(t) {
  const ar = await words('ar');
  await t.page.goto('/look');
  await t.waitFor(t.heading(ar('train_title')));
  await t.button(ar('look_camera')).click();
  await t.waitFor(t.page.getByRole('alert').getByText(ar('camera_refused')));
  await t.checkAccessibility('a camera that may not be used');
  await t.button(ar('close')).click();
  await dropOnStage(t, lighthouse);
  await awaitAnalysis(t);
  checkEqual(
    await t.page.evaluate(() => [document.documentElement.dir, document.querySelector('.words .name').lang]),
    ['rtl', 'ar'],
    'direction, and the language of the names',
  );
  await t.checkAccessibility('a picture, from the right');
  await t.page.setViewportSize({ width: 360, height: 740 });
  await t.checkWidth('a picture, from the right');
}
