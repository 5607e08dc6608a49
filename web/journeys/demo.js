// Tests the demonstration: signed in at once, in any language, by keyboard alone, and on a narrow page. Also tests the API reference and a
// replica.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { check, checkEqual, journey, origin, words } from './browser.js';
import { testCopy } from './copies.js';
import { caller, newApp, newKey, pollUntil } from './demonstration.js';
import { lighthouse, sample, withPlace } from './pictures.js';

const en = await words('en');

await journey(async (arrive) => {
  const guest = await arrive();
  await guest.step('A demonstration signs in by itself and shows its application', async () => {
    await guest.page.goto('/apps');
    await guest.waitFor(guest.heading(en('keys')));
    check(/\/apps\/\w+$/.test(guest.page.url()), `the page is at ${guest.page.url()}`);
  });
  const home = new URL(guest.page.url()).pathname;
  await guest.step('A person adds the samples to an empty application', () => addSamples(guest));
  await guest.step('A person adds a folder, and the page names the files that it cannot read', () => addFolder(guest));
  await guest.step('The journey reports a request to another host, a script and a picture without a description', () =>
    checkFaultReports(guest),
  );
  await guest.step('The page changes its language without loading again', () => changeLanguages(guest));
  await checkDialogs(guest, await words('ar'), 'ar', home);
  await guest.context.close();

  const reader = await arrive();
  await reader.page.goto(home);
  await checkDialogs(reader, en, 'en', home);
  await reader.step('A person creates a key by keyboard alone', () => createKeyByKeyboard(reader, home));
  let key;
  await reader.step('A person replaces a key', async () => {
    key = await replaceKey(reader, home);
  });
  await reader.step('The API reference makes a call with the new key', () => tryReference(reader, key));
  await reader.context.close();

  const owner = await arrive();
  await owner.page.goto('/apps');
  await owner.waitFor(owner.heading(en('keys')));
  await testCopy(owner);
  await owner.step('A person saves all pictures of the device to an application, with their concepts', () =>
    savePictures(owner),
  );
  await owner.step('A saved picture gets the location in its file only if the person wants that', () =>
    savePlaces(owner),
  );
  await owner.context.close();

  const phoneUser = await arrive({ language: 'ja-JP', touch: true, camera: true });
  await phoneUser.step(
    'A person with a telephone trains a model on chosen files and on the camera while holding a button',
    () => trainByTouch(phoneUser, home),
  );
});

async function addSamples(t) {
  const app = await newApp(t);
  const url = t.page.url();
  await t.page.goto(`/${app}/inputs`);
  await t.button(en('pictures_add_samples')).click();
  await t.waitFor(t.page.getByText(en('inputs_count_stored', { count: '42' })));
  await t.page.goto(`/${app}/inputs`);
  await t.button(en('inputs_map')).click();
  await t.waitFor(t.page.locator('.pins .pin'));
  await t.page.goto(url);
  await t.waitFor(t.heading(en('keys')));
}

/** Adds a folder with pictures, a damaged archive, an empty picture, and files that an import leaves out. Then adds it again. */
async function addFolder(t) {
  const app = await newApp(t);
  const url = t.page.url();
  const call = caller(origin, await newKey(t, app));
  const folder = await mkdtemp(join(tmpdir(), 'journey-'));
  const write = async (path, content) => {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  };
  await write('a/IMG_1.JPG', await sample(lighthouse, 'camera A'));
  await write('b/IMG_1.JPG', await sample(lighthouse, 'camera B'));
  await write('@eaDir/a.jpg/SYNOPHOTO_THUMB_M.jpg', await sample(lighthouse, 'thumbnail'));
  for (const path of ['a/.hidden.jpg', 'a/IMG_1.xmp', 'Thumbs.db', 'BMW.txt'])
    await write(path, 'BMW 320d, oil in March');
  await write('empty.jpg', '');
  await write('damaged.zip', 'PK');
  for (const stored of [2, 0]) {
    await t.page.goto(`/${app}/inputs`);
    await t.page.goto(`/${app}/inputs#upload`);
    await t.page.locator('input[webkitdirectory]').setInputFiles(folder);
    await t.waitFor(t.page.getByText(en('inputs_count_stored', { count: String(stored) })));
    await t.waitFor(t.page.getByText(en('inputs_file_empty')));
    await t.waitFor(t.page.getByText(en('inputs_file_damaged')));
    const reasons = { thumbnails: '1', sidecars: '1', hidden: '1', system: '1', unknown: '1' };
    for (const [reason, count] of Object.entries(reasons))
      await t.waitFor(t.page.getByText(en(`inputs_left_out_${reason}`, { count })));
  }
  const { inputs } = await call('GET', '/inputs?per_page=100');
  checkEqual(
    inputs.map(({ data }) => data.metadata.file.replace(/^[^/]*/, '')).sort(),
    ['/a/IMG_1.JPG', '/b/IMG_1.JPG'],
    'the paths in the metadata',
  );
  await rm(folder, { recursive: true });
  await t.page.goto(url);
  await t.waitFor(t.heading(en('keys')));
}

async function savePictures(t) {
  const app = await newApp(t);
  await t.page.goto(`/${app}/inputs`);
  await t.waitFor(t.page.getByText(en('pictures_add_samples')));
  await t.page.goto('/look');
  await t.button(en('train_samples')).click();
  await t.waitUntil(() =>
    [...document.querySelectorAll('.lesson')].every((lesson) => lesson.querySelectorAll('li').length === 4),
  );
  await t.button(en('device_pictures_save', { app: 'Harbour watch' })).click();
  await t.waitFor(t.page.getByText(en('look_saved', { app: 'Harbour watch' })));
  await t.page.goto(`/${app}/inputs`);
  await t.waitFor(t.page.locator('main').getByText(en('count_pictures', { n: '8' })));
  await t.page.goto(`/${app}/concepts`);
  await t.waitUntil(() => document.querySelectorAll('td:first-of-type [data-n="4"]').length === 2);
}

/** Saves pictures whose files have a place, one by one and all at once. The inputs get the places if the person wants that. */
async function savePlaces(t) {
  const app = await newApp(t);
  const call = caller(origin, await newKey(t, app));
  const waitForPlaces = (count) =>
    pollUntil(
      async () => (await call('GET', '/inputs?per_page=100')).inputs.map(({ data }) => data.geo?.geo_point.latitude),
      (places) => places.filter(Boolean).length === count,
      `pictures with a place, of which there must be ${count}`,
    );
  const show = async (latitude) => {
    const buffer = withPlace(await sample(lighthouse), latitude, 11);
    const files = t.page.locator('input[type=file][multiple]').first();
    await files.setInputFiles([{ name: `at-${latitude}.jpg`, mimeType: 'image/jpeg', buffer }]);
    await t.waitFor(t.page.getByRole('region', { name: en('look_picture') }).locator(`img[alt*="at-${latitude}"]`));
  };
  const choice = t.page.getByRole('checkbox', { name: /location stored in the file/ }).first();
  await t.page.goto(`/${app}/inputs`);
  await t.waitFor(t.page.getByText(en('pictures_add_samples')));
  await t.page.goto('/look');
  await show(40);
  await t.button(en('device_pictures_save', { app: 'Harbour watch' })).click();
  await t.waitFor(choice);
  await waitForPlaces(0);
  checkEqual(await choice.isChecked(), false, 'whether a place is used that nobody asked for');
  await t.checkAccessibility('the question about the place');
  await choice.check();
  await waitForPlaces(1);
  await show(41);
  await t.button(en('look_save')).click();
  await t.waitUntil((text) => document.querySelector('main').textContent.includes(text), '(2 have one)');
  await waitForPlaces(2);
  await choice.uncheck();
  await waitForPlaces(0);
}

async function trainByTouch(t, home) {
  const ja = await words('ja');
  await t.page.setViewportSize({ width: 360, height: 740 });
  await t.page.goto(`${home.replace('/apps', '')}/models#new`);
  const concepts = t.page.locator('.concepts .concept');
  for (const [i, name] of ['灯台', '時計'].entries()) await concepts.nth(i).locator('input').first().fill(name);
  const fileChooser = t.page.waitForEvent('filechooser');
  await t.button(ja('models_add_pictures_of', { name: '灯台' })).tap();
  await (await fileChooser).setFiles([
    { name: lighthouse, mimeType: 'image/jpeg', buffer: await sample(lighthouse, 'one file') },
    { name: 'again.jpg', mimeType: 'image/jpeg', buffer: await sample(lighthouse, 'another file') },
    { name: 'copy.jpg', mimeType: 'image/jpeg', buffer: await sample(lighthouse, 'one file') }, // a repeated file counts once and is sent once
  ]);
  await t.waitFor(concepts.nth(0).locator('[data-count="2"]'));
  await t.button(ja('models_use_camera')).tap();
  const holdButton = t.page.locator('.hold button:enabled').nth(1);
  await t.waitFor(holdButton);
  await holdButton.scrollIntoViewIfNeeded();
  const { x, y, width, height } = await holdButton.boundingBox();
  const screen = await t.context.newCDPSession(t.page);
  const sendTouch = (type, ...touchPoints) => screen.send('Input.dispatchTouchEvent', { type, touchPoints });
  await sendTouch('touchStart', { x: x + width / 2, y: y + height / 2 });
  await t.waitUntil(() => Number(document.querySelectorAll('.concept [data-count]')[1].dataset.count) >= 3);
  await sendTouch('touchEnd');
  checkEqual(await t.page.locator('.hold .held').count(), 0, 'buttons that are held still');
  await t.checkWidth('a new model');
  await t.checkAccessibility('a new model, by touch');
  await t.button(ja('models_stop_camera')).tap();
  await t.button(ja('models_train')).tap();
  await t.waitFor(t.link(ja('models_version_show', { n: 1 })));
  await t.checkWidth('a model');
}

/** Does forbidden things in the page, and checks that each is reported. */
async function checkFaultReports(t) {
  await t.page.evaluate(() => document.querySelector('main').append(new Image()));
  const message = await t.checkAccessibility('a picture without words').catch((failure) => failure.message);
  check(/image-alt/.test(message), `axe: ${message}`);
  const title = await t.page.evaluate(() => {
    void fetch('http://stranger.example/').catch(() => {});
    const script = document.createElement('script');
    script.textContent = 'document.title = "taken"';
    document.body.append(script);
    return document.title;
  });
  check(title !== 'taken', 'a script in the page ran');
  await t.page.goto('http://stranger.example/').catch(() => {});
  await t.page.goto('/apps');
  await t.waitFor(t.heading(en('keys')));
  const faults = t.takeFaults();
  for (const pattern of [/connect-src/, /script-src/, /request to http:\/\/stranger/]) {
    check(
      faults.some((fault) => pattern.test(fault)),
      `told: ${JSON.stringify(faults)}`,
    );
  }
}

/** Changes the language from English through Japanese to Arabic, without loading the page again. */
async function changeLanguages(t) {
  await t.page.evaluate(() => {
    globalThis.sameOld = true;
  });
  let name = 'English';
  let m = en;
  for (const next of [
    { code: 'ja', name: '日本語', dir: 'ltr' },
    { code: 'ar', name: 'العربية', dir: 'rtl' },
  ]) {
    await t.button(m('language_is', { language: name })).click();
    const dialog = t.dialog(m('language'));
    await t.waitFor(dialog);
    await t.checkAccessibility(`languages, in ${name}`);
    await dialog.getByText(next.name, { exact: true }).first().click();
    await t.waitForRemoval(dialog);
    m = await words(next.code);
    name = next.name;
    await t.waitFor(t.heading(m('keys')));
    const page = await t.page.evaluate(() => {
      const { lang, dir } = document.documentElement;
      return [lang, dir, globalThis.sameOld];
    });
    checkEqual(page, [next.code, next.dir, true], 'language, direction, and whether the page stayed');
  }
}

/**
 * Opens every dialog of a signed-in person, checks it with axe in light and dark, and then checks its width at 360 px. sweep.js checks the
 * pages.
 */
async function checkDialogs(t, m, language, home) {
  const dialogs = [
    [home, () => t.link(m('new_application')).first(), m('new_application')],
    [home, () => t.button(m('rename')), m('rename_application')],
    [home, () => t.button(m('change_default_model')), m('default_model')],
    [home, () => t.link(m('new_key')), m('new_key')],
    [home, () => t.button(m('new_secret')), m('new_secret_title')],
    [home, () => t.button(m('revoke_tokens')), m('revoke_title')],
    [home, () => t.page.locator('a[href="#delete"]'), undefined],
    ['/account', () => t.button(m('change_name')), m('change_name')],
    ['/account', () => t.button(m('change_address')), m('change_address')],
    ['/account', () => t.button(m('change_password')), m('change_password')],
    ['/account', () => t.button(m('shortcuts')), m('shortcuts')],
  ];
  await t.step(`Every dialog in ${language} is accessible and fits a narrow screen`, async () => {
    for (const [path, opener, name] of dialogs) {
      if (new URL(t.page.url()).pathname !== path) await t.page.goto(path);
      await waitForLoad(t);
      await opener().click();
      const dialog = name ? t.dialog(name) : t.page.getByRole('alertdialog');
      await t.waitFor(dialog);
      await waitForLoad(t);
      await t.checkAccessibility(`${name ?? 'deletion'} in ${language}`);
      await narrowPage(t, () => t.checkWidth(`${name ?? 'deletion'} in ${language}`));
      await t.press('Escape');
      await t.waitForRemoval(dialog);
    }
  });
}

/** Waits until nothing on the page is loading. */
async function waitForLoad(t) {
  await t.waitUntil(() => document.querySelector('main h1') && !document.querySelector('[aria-busy="true"]'));
}

/** Runs `work` while the page is as narrow as a telephone. */
async function narrowPage(t, work) {
  await t.page.setViewportSize({ width: 360, height: 740 });
  await work();
  await t.page.setViewportSize({ width: 1200, height: 800 });
}

/** Without a mouse, opens the dialog, closes it, opens it again and creates a key. */
async function createKeyByKeyboard(t, home) {
  await t.page.goto(home);
  await t.waitFor(t.link(en('new_key')));
  await waitForLoad(t);
  await t.press('k'); // the key in the list of shortcuts
  const dialog = t.dialog(en('new_key'));
  await t.waitFor(dialog);
  await t.waitUntil((label) => document.activeElement?.labels?.[0]?.textContent === label, en('description'));
  await t.press('Escape');
  await t.waitForRemoval(dialog);

  await t.link(en('new_key')).focus();
  await t.press('Enter');
  await t.waitFor(dialog.getByText(en('group_all_text')));
  checkEqual(await t.focusLabel(), en('description'), 'the first stop');
  await t.press('Shift+Tab');
  checkEqual(await isInDialog(t), true, 'the focus stays in the dialog, backwards');
  await t.press('Tab');
  await t.type('By keyboard');
  const stops = [];
  do {
    await t.press('Tab');
    stops.push(await t.focusLabel());
    check(stops.length < 20 && (await isInDialog(t)), `the focus goes ${stops}`);
  } while (stops.at(-1) !== en('create_key'));
  checkEqual(
    stops.filter((stop) => [en('group_all'), en('group_predict'), en('scopes_single'), en('cancel')].includes(stop)),
    [en('group_all'), en('group_predict'), en('scopes_single'), en('cancel')],
    'the stops on the way',
  );
  await t.press('Enter');
  const keyDialog = t.dialog(en('key_once'));
  await t.waitFor(keyDialog);
  await t.press('Escape');
  await t.waitFor(keyDialog);
  await t.field(en('key_stored')).focus();
  await t.press('Space');
  await t.press('Tab');
  checkEqual(await t.focusLabel(), en('done'), 'the stop after the box');
  await t.press('Enter');
  await t.waitForRemoval(keyDialog);
  await t.waitFor(t.page.getByRole('rowheader', { name: 'By keyboard', exact: true }));
}

/** Whether the focus is in a dialog. */
function isInDialog(t) {
  return t.page.evaluate(() => document.activeElement?.closest('[role="dialog"]') !== null);
}

/** Replaces that key, and returns the new one. */
async function replaceKey(t) {
  await t.button(en('replace_key', { name: 'By keyboard' })).click();
  const question = t.dialog(en('replace_key_title', { name: 'By keyboard' }));
  checkEqual(await t.focusLabel(), en('delete_cancel'), 'the answer that changes nothing');
  await t.checkAccessibility('the question before a key is replaced');
  await t.button(en('replace'), question).click();
  const keyDialog = t.dialog(en('key_once'));
  await t.waitFor(keyDialog);
  const key = await t.copyText(t.button(en('copy_what', { what: en('key') }), keyDialog));
  check(/^[0-9a-f]{32}$/.test(key), 'a key has 32 digits');
  await t.field(en('key_stored')).check();
  await t.button(en('done')).click();
  await t.waitForRemoval(keyDialog);
  return key;
}

/** Tries a call in the reference, first without a key and then with one. */
async function tryReference(t, key) {
  await t.page.goto('/docs');
  const call = t.page.locator('.opblock-get', { has: t.page.locator('[data-path="/models"]') }).first();
  await call.locator('.opblock-summary-control').click();
  await t.button('Authorize').first().click();
  const authDialog = t.page.getByRole('dialog');
  await t.waitFor(authDialog);
  await t.checkAccessibility('the key for the reference', '.modal-ux');
  await authDialog.locator('input').first().fill(`Key ${key}`);
  await authDialog.getByRole('button', { name: 'Authorize' }).first().click();
  await authDialog.getByRole('button', { name: 'Close' }).last().click();
  await call.getByRole('button', { name: 'Execute' }).click();
  await t.waitFor(call.locator('.live-responses-table .response-col_status', { hasText: '200' }));
  await t.checkAccessibility('an answer in the reference', '.opblock.is-open');
}
