// Looking at pictures: the browser computes and stores everything, and keeps working without a network.
import { check, journey, same, timing, words } from './browser.js';
import { drop, lighthouse, named, samples } from './pictures.js';

const en = await words('en');
const edge = process.env.EDGE;

await journey(async (arrive) => {
  const guest = await arrive({ camera: true, others: [edge] });
  await guest.step('the recogniser comes, and says how far it is', () => comes(guest));
  await guest.step('a dropped picture is read on the device', () => reads(guest));
  await guest.step('names are in any language at once', () => speaks(guest));
  await guest.step('browser, origin and edge give the same hashes', () => agrees(guest));
  await guest.step('what is no picture is refused in words', () => refuses(guest));
  await guest.step('two concepts are taught, trained and seen', () => teaches(guest));
  await guest.step('similar pictures are found among those that are kept', () => finds(guest));
  await guest.step('the camera is read as it runs', () => watches(guest));
  await guest.step('the page can be installed', () => installs(guest));
  await guest.step('keys do what buttons do', () => types(guest));
  await guest.step('it starts without a network, with everything there', () => starts(guest));
  await guest.step('everything is forgotten when that is wanted', () => forgets(guest));

  const hurried = await arrive();
  await hurried.step('the server answers until the recogniser can, if that is wanted', () => hurries(hurried));
  await hurried.context.close();

  const refused = await arrive({ remembered: { language: 'ar' } });
  await refused.step('a camera that may not be used is said to be one, from the right', () => denied(refused));
});

/** The concepts that the page shows for a picture: the name, or its translation into the language `tongue`, and the value. */
function seen(t, tongue) {
  return t.page.locator('.readout .words li').evaluateAll(
    (rows, tongue) =>
      rows.map((row) => ({
        name: row.querySelector(tongue ? `[lang="${tongue}"]` : '.name').textContent,
        value: Number(row.querySelector('.v').textContent.replace(',', '.')),
      })),
    tongue,
  );
}

/** Waits until a picture has been recognised and its concepts appear in every chosen language. */
async function still(t) {
  await t.seen(t.page.locator('.readout .words li'));
  await t.until(() => !document.querySelector('.readout [aria-busy="true"]'));
}

/** Drops files where pictures are shown. */
function put(t, ...files) {
  return drop(t.page.locator('.stage'), files);
}

async function comes(t) {
  const asked = [];
  t.context.on('request', (request) => asked.push(new URL(request.url()).pathname));
  let go;
  const held = new Promise((resolve) => {
    go = resolve;
  });
  const network = /\/runtime\/network-/;
  await t.page.route(network, (route) => held.then(() => route.continue()));
  await t.page.goto('/look');
  await t.seen(t.heading(en('look')));
  const bar = t.page.getByRole('progressbar', { name: en('look_loading') });
  await t.seen(bar);
  await t.look('the recogniser on its way');
  await t.button('Bee on a petal', t.page.locator('.film')).click(); // the page shows it, and recognises it later
  await t.seen(t.page.locator('.facts', { hasText: 'Bee on a petal' }));
  await put(t, lighthouse);
  await t.seen(t.page.locator('.facts', { hasText: lighthouse }));
  same(await t.page.getByRole('alert').count(), 0, 'alerts about pictures that came early');
  go();
  await still(t);
  await t.page.unroute(network);
  await t.page.reload();
  await t.gone(bar);
  await t.seen(t.heading(en('teach_title')));
  check(
    asked.some((path) => /^\/runtime\/network-\w+\.plan$/.test(path)),
    `no network was loaded: ${asked.filter((p) => p.startsWith('/runtime'))}`,
  );
  await t.look('an empty page');
  t.asked = asked;
}

async function hurries(t) {
  const sent = []; // calls with a picture
  t.context.on('request', (request) => {
    if (/"base64"/.test(request.postData() ?? '')) sent.push(new URL(request.url()).pathname);
  });
  let go;
  const held = new Promise((resolve) => {
    go = resolve;
  });
  await t.page.route(/\/runtime\/network-/, (route) => held.then(() => route.continue()).catch(() => {}));
  const choice = t.page.getByRole('checkbox', { name: en('look_meanwhile') });
  const lead = t.page.locator('main header p');
  const call = '/v2/models/aaa03c23b3724a16a56b629203edc62c/outputs';
  await t.page.goto('/look');
  await t.seen(choice);
  same(await lead.textContent(), en('look_lead'), 'the lead before the choice');
  await put(t, lighthouse);
  await t.seen(t.page.locator('.facts', { hasText: lighthouse }));
  await t.look('the offer of the server');
  same(sent, [], 'calls with a picture before the choice');
  await choice.check();
  await still(t);
  await t.seen(t.page.getByText(en('look_origin')));
  const rows = await seen(t);
  check(
    rows.slice(0, 8).some((row) => row.name === 'lighthouse'),
    `the server sees ${rows.map((row) => row.name)}`,
  );
  same(await lead.textContent(), en('look_meanwhile_lead'), 'the lead after the choice');
  same(sent, [call], 'calls with a picture after the choice');
  await t.look('the answer of the server');
  await t.page.reload();
  await t.seen(choice);
  check(await choice.isChecked(), 'the choice is forgotten');
  await put(t, lighthouse);
  await t.seen(t.page.getByText(en('look_origin')));
  go();
  await t.seen(t.page.getByText(en('look_here')));
  await t.gone(choice);
  same(await lead.textContent(), en('look_lead'), 'the lead with the recogniser');
  await still(t);
  same(sent, [call, call], 'calls with a picture');
}

async function reads(t) {
  t.asked.length = 0;
  await put(t, lighthouse);
  await still(t);
  const rows = await seen(t);
  check(
    rows.slice(0, 8).some((row) => row.name === 'lighthouse'),
    `it sees ${rows.map((row) => row.name)}`,
  );
  same(
    rows.map((row) => row.value),
    rows.map((row) => row.value).sort((a, b) => b - a),
    'the order of the values',
  );
  await t.seen(t.page.getByText(en('look_here')));
  await t.page.getByRole('button', { name: /^Show \d+ lower/ }).click();
  check((await seen(t)).length > rows.length, 'there are no lower concepts');
  await t.button(en('look_fewer')).click();
  await t.page.locator('.readout .words li button').first().hover();
  await t.seen(t.page.locator('.photo canvas'));
  await t.seen(t.page.getByText(en('look_where', { concept: rows[0].name })));
  same(
    t.asked.filter((path) => /^\/(v2(?!\/(sync\/|inputs\/status$|models$))|hosted)/.test(path)), // except the requests of the side bar and the copy
    [],
    'calls to the server',
  );
  await t.look('a picture that was read');
  const onward = t.button(en('teach_title'));
  const { y } = await onward.boundingBox();
  check(y < 800, `nothing on the first screen says that it can be taught: ${y}`);
  await onward.click();
  same(await t.focused(), en('teach_name', { number: '1' }), 'what comes first in teaching');
}

async function speaks(t) {
  const english = await named('en');
  const ids = (await seen(t)).map((row) => english.get(row.name));
  for (const code of ['ja', 'ru']) {
    if (code !== 'ja') await t.field(en('look_names_more')).selectOption(code);
    await still(t);
    const there = await named(code);
    same(
      (await seen(t, code)).map((row) => there.get(row.name)),
      ids,
      `what the names in ${code} stand for`,
    );
  }
  same(
    await t.page.locator('.heads button').allTextContents(),
    ['Русский', 'English', '日本語'],
    'the languages beside each other',
  );
  await t.button('English').click();
  await still(t);
  same(await t.page.locator('.heads [aria-pressed="true"]').textContent(), 'English', 'the language in front');
}

/** Makes a receipt, compares it with this server and with an edge, and checks the hashes in it. */
async function agrees(t) {
  const part = t.page.getByRole('region', { name: en('receipt_title') });
  await t.button(en('receipt_make'), part).click();
  await t.seen(part.getByText(en('receipt_browser')));
  await t.button(en('receipt_compare'), part).click();
  await t.seen(part.getByText(en('receipt_equal', { equal: '2', all: '2' })));
  if (edge) {
    await part.getByText(en('receipt_elsewhere')).click();
    await t.field(en('receipt_address')).fill('nowhere at all');
    check(await t.button(en('receipt_other'), part).isDisabled(), 'the comparison is offered without a key');
    await t.field(en('receipt_key')).fill(process.env.EDGE_KEY);
    await t.button(en('receipt_other'), part).click();
    await t.seen(part.getByText(en('receipt_address_wrong')));
    await t.field(en('receipt_address')).fill(new URL(edge).host);
    await t.button(en('receipt_other'), part).click();
    await t.seen(part.getByText(en('receipt_equal', { equal: '3', all: '3' })));
  }
  const hashes = await part.locator('code').evaluateAll((all) => all.map((one) => one.title));
  const places = edge ? 3 : 2;
  same(hashes.length, 2 * places, 'hashes');
  check(
    hashes.every((hash) => /^[0-9a-f]{64}$/.test(hash)),
    `hashes ${hashes}`,
  );
  same(new Set(hashes).size, 2, 'different hashes');
  await t.look('a receipt');
  const keys = await t.page.evaluate(async () => {
    const session = await (await fetch('/console/apps')).json();
    return (await (await fetch(`/console/apps/${session.apps[0].id}/keys`)).json()).keys.length;
  });
  same(keys, 1, 'keys that are left'); // the key of the new data folder
}

async function refuses(t) {
  await put(t, ['notes.jpg', 'no picture at all']);
  await t.seen(t.page.getByRole('alert').getByText(en('look_unreadable_do')));
  await t.look('a file that is no picture');
  // A file that is dropped outside the drop area: without the page's handler, the browser would open the file and leave the page.
  const goes = await t.page.evaluate(() => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File(['x'], 'x.jpg', { type: 'image/jpeg' }));
    const to = document.querySelector('nav a');
    return ['dragover', 'drop'].filter((kind) =>
      to.dispatchEvent(new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true })),
    );
  });
  same(goes, [], 'what is left to the browser');
}

async function teaches(t) {
  await t.button(en('teach_samples')).click();
  await t.until(() =>
    [...document.querySelectorAll('.lesson')].every((lesson) => lesson.querySelectorAll('li').length === 4),
  );
  const lesson = t.page.locator('.lesson').first();
  await drop(lesson, [lighthouse]);
  await t.button(en('teach_remove', { name: lighthouse }), lesson).click();
  await t.until(() => document.querySelectorAll('.lesson li').length === 8);
  same(await t.page.locator('.drop.over').count(), 0, 'places that go on waiting for what was dropped elsewhere');
  await t.look('two concepts with pictures');
  const train = t.button(en('teach_train'));
  await train.click();
  const told = t.page.getByText(en('teach_trained', { time: '#' }).split('#')[0]);
  await t.seen(told);
  const seconds = Number((await told.textContent()).match(/[\d.]+/)[0]);
  if (timing) check(seconds <= 6, `training took ${seconds} s, want 2`); // the limit is three times the goal
  for (const [title, first] of [
    ['Pelicans', en('lesson_bird')],
    ['Damselfly on a leaf', en('lesson_insect')],
  ]) {
    await t.button(title, t.page.locator('.film')).click();
    await t.seen(t.page.locator('.facts', { hasText: title }));
    await still(t);
    const rows = await seen(t);
    same([rows[0].name, rows.length], [first, 2], `what was taught, in ${title}`);
  }
  await t.look('what was taught, seen');
}

async function finds(t) {
  const part = t.page.locator('section[aria-labelledby="similar"]');
  await t.button(en('kept_samples'), part).click();
  await t.seen(part.getByText(en('count_pictures', { n: '43' }).replace('43', '42'))); // the lighthouse is one of the samples
  const hits = () =>
    part
      .locator('li')
      .evaluateAll((all) =>
        all.map((one) => [one.querySelector('button').ariaLabel, one.querySelector('.score').textContent.trim()]),
      );
  await t.until((word) => document.querySelector('#similar').textContent === word, en('similar_title'));
  const found = await hits();
  same(found[0], ['Damselfly on a leaf', en('similar_same')], 'the most alike');
  same(found[1][0], 'Dragonfly, face on', 'the next');
  const scores = found.slice(1).map(([, score]) => Number(score));
  same(
    scores,
    [...scores].sort((a, b) => b - a),
    'the order',
  );
  const next = 'Dragonfly, face on';
  await part.getByRole('button', { name: next }).click();
  await t.seen(t.page.locator('.facts', { hasText: next }));
  await still(t);
  await t.until(() => document.querySelector('section[aria-labelledby="similar"] .score'));
  same((await hits())[0], [next, en('similar_same')], 'after a step to it');
  await t.until(() => document.querySelector('.photo').getBoundingClientRect().top >= 0); // a picture that is selected below is shown above
  await t.look('similar pictures');
}

async function watches(t) {
  await t.button(en('look_camera')).click();
  await t.until((least) => Number(document.querySelector('[data-rate]')?.dataset.rate) >= least, timing ? 5 : 0.1);
  await t.look('the camera');
  await t.button(`${en('teach_more')}`).click();
  const lesson = t.page.locator('.lesson').nth(2);
  await lesson.getByRole('textbox').fill('Clock');
  for (let n = 1; n <= 3; n++) {
    await lesson.getByRole('button', { name: en('teach_snap') }).click();
    await t.until((n) => document.querySelectorAll('.lesson')[2].querySelectorAll('li').length === n, n);
  }
  await t.button(en('teach_train')).click();
  await t.until((name) => document.querySelector('.readout .words .name')?.textContent === name, 'Clock');
  await t.button(en('camera_take')).click();
  await t.seen(t.page.locator('.photo img'));
  await still(t);
  same((await seen(t))[0].name, 'Clock', 'what the picture shows');
  same(await t.page.locator('video').count(), 0, 'the camera after a picture');
}

async function installs(t) {
  const cdp = await t.context.newCDPSession(t.page);
  const { installabilityErrors } = await cdp.send('Page.getInstallabilityErrors');
  // A browser window of a test is incognito, and Chromium reports that as an error. All other requirements must be met.
  same(
    installabilityErrors.map((one) => one.errorId).filter((id) => id !== 'in-incognito'),
    [],
    'what keeps it from being installed',
  );
}

async function starts(t) {
  await t.seen(t.page.getByText(en('look_stored')));
  await t.offline(true);
  same(
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
  await t.seen(t.heading(en('similar_title')).or(t.heading(en('kept_title'))));
  await t.seen(t.page.getByText(en('look_offline')));
  await t.seen(t.page.getByText(en('count_pictures', { n: '46' }))); // three of them are frames of the camera, and one is its picture
  same(
    await t.page.locator('.lesson input:not([type])').evaluateAll((all) => all.map((one) => one.value)),
    [en('lesson_bird'), en('lesson_insect'), 'Clock'],
    'what was taught',
  );
  await t.seen(t.page.getByRole('tab', { name: en('look_own') }));
  await t.button('Lighthouse in the sea', t.page.locator('.film')).click();
  await still(t);
  check(
    (await seen(t)).some((row) => row.name === 'lighthouse'),
    'the lighthouse is not seen',
  );
  await quickly(t);
  const part = t.page.getByRole('region', { name: en('receipt_title') });
  await t.button(en('receipt_make'), part).click();
  await t.seen(part.getByText(en('receipt_browser')));
  await t.field(en('receipt_key')).fill('0123456789abcdef0123456789abcdef');
  await t.button(en('receipt_other'), part).click();
  await t.seen(part.getByText(en('receipt_sum', { equal: '1', all: '1', missing: '1' })));
  await t.seen(part.getByText(en('receipt_offline')));
  await t.look('a page without a network');
  await t.page.locator('.scroll').evaluate((all) => all.scrollTo(0, 0));
  await t.page.setViewportSize({ width: 360, height: 740 });
  await t.fits('a page without a network');
  await t.page.setViewportSize({ width: 1200, height: 800 });
  await t.offline(false);
  await t.page.reload();
  await t.seen(t.page.getByText(en('look_stored')));
  await t.gone(t.page.getByText(en('look_offline')));
}

/** Drops some pictures, and checks the time of the fastest one. */
async function quickly(t) {
  const times = [];
  for (const name of ['35-slice-of-pizza.jpg', '36-glacier-and-rock.jpg', '38-horses-in-salzburg.jpg']) {
    const took = t.page.evaluate(read, name);
    await put(t, name);
    times.push(await took);
  }
  const least = Math.min(...times);
  if (timing) check(least <= 3000, `it took ${Math.round(least)} ms at least, want 1000`); // the limit is three times the goal
}

/** The time in ms from a drop until the page shows the picture and its concepts. */
function read(name) {
  let began;
  addEventListener('drop', () => (began = performance.now()), { once: true, capture: true });
  return new Promise((resolve) => {
    const look = new MutationObserver(() => {
      const shown = document.querySelector('.facts b')?.textContent === name;
      if (
        !shown ||
        !document.querySelector('.readout .words li') ||
        document.querySelector('.readout [aria-busy="true"]')
      )
        return;
      look.disconnect();
      resolve(performance.now() - began);
    });
    look.observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
  });
}

async function types(t) {
  t.page.on('filechooser', () => {}); // intercepts file dialogs from now on, not only while waitForEvent waits
  await t.page.goto('/look');
  await t.seen(t.heading(en('teach_title')));
  const chosen = t.page.waitForEvent('filechooser');
  await t.press('o');
  await (await chosen).setFiles(new URL(lighthouse, samples).pathname);
  await still(t);
  await t.press('c');
  await t.seen(t.page.locator('video'));
  await t.press('c');
  await t.seen(t.page.getByText(en('look_nothing_yet')));
  await t.button('Hummingbird', t.page.locator('.film')).focus();
  await t.press('Enter');
  await still(t);
  await t.press('Tab');
  same(await t.focused(), 'Beach in the wind', 'the next stop');
}

async function forgets(t) {
  await t.button(en('kept_forget')).click();
  const question = t.dialog(en('forget_title'));
  await t.seen(question);
  same(await t.focused(), en('keep_it'), 'the answer that changes nothing');
  await t.look('the question before all is forgotten');
  await t.button(en('forget_do'), question).click();
  await t.gone(question);
  await t.seen(t.heading(en('kept_none')));
  await t.page.reload();
  await t.seen(t.heading(en('kept_none')));
  same(
    await t.page.locator('.lesson input:not([type])').evaluateAll((all) => all.map((one) => one.value)),
    ['', ''],
    'what is taught',
  );
}

async function denied(t) {
  const ar = await words('ar');
  await t.page.goto('/look');
  await t.seen(t.heading(ar('teach_title')));
  await t.button(ar('look_camera')).click();
  await t.seen(t.page.getByRole('alert').getByText(ar('camera_refused')));
  await t.look('a camera that may not be used');
  await t.button(ar('close')).click();
  await put(t, lighthouse);
  await still(t);
  same(
    await t.page.evaluate(() => [document.documentElement.dir, document.querySelector('.words .name').lang]),
    ['rtl', 'ar'],
    'direction, and the language of the names',
  );
  await t.look('a picture, from the right');
  await t.page.setViewportSize({ width: 360, height: 740 });
  await t.fits('a picture, from the right');
}
