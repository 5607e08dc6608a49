// Videos on the first page: the browser recognises their concepts, a person steps through them by keys and saves frames, and the page
// explains why it cannot read a file.
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { check, checkEqual, journey, words } from './browser.js';
import { dropFiles } from './pictures.js';

const en = await words('en');
const testFolder = new URL('../../origin/server/video/testdata/', import.meta.url);
const sharedFolder = new URL('../../../shared/video/', import.meta.url); // further test films, if the project has them
const types = { webm: 'video/webm', mp4: 'video/mp4', mov: 'video/quicktime', wmv: '', ts: 'video/mp2t' };

// Two pictures of one pixel, for one second each.
const picture = (lzw) => `21f90400640000002c000000000100010000${lzw}0100`;
const gif = Buffer.from(`47494638396101000100800000ff00000000ff${picture('020244')}${picture('02024c')}3b`, 'hex');

await journey(async (arrive) => {
  const t = await arrive();
  await t.step('The browser analyses a dropped video itself, frame by frame', () => recogniseVideo(t));
  await t.step('The keys go from frame to frame, and play and pause the video', () => stepFrames(t));
  await t.step('The page shows the times at which a picked concept occurs', () => pickConcept(t));
  await t.step('A saved frame is among the pictures of the application', () => saveFrame(t));
  await t.step('The page shows the frames of an animation without a player', () => dropAnimation(t));
  await t.step('The page explains that a video is damaged', () => dropDamagedVideo(t));
  await t.step('In German, the page with a video fits a narrow screen', () => checkNarrowPage(t));
  if (!existsSync(sharedFolder)) return;
  await t.step('The frames of a film show the concepts in its table', () => checkLabels(t, 'slides-h264.mp4'));
  await t.step('The page shows the frames of a video that the browser cannot play', () => checkUnplayableVideo(t));
  await t.step('The page shows a rotated video upright', () => checkRotation(t));
  await t.step('The page shows why it cannot read a video', () => checkErrors(t));
});

/** Returns the bytes of a video. */
function readVideo(name, folder = testFolder) {
  return readFile(new URL(name, folder));
}

/** Drops a video on the page, and waits until it has been recognised or refused. */
async function dropVideo(t, name, data) {
  if (!t.page.url().endsWith('/look')) await t.page.goto('/look');
  await t.waitFor(t.page.locator('.scroll .drop'));
  await dropFiles(t.page.locator('.scroll').first(), [[name, data, types[name.split('.').at(-1)] ?? 'image/gif']]);
  await t.waitFor(t.page.locator(`.stage[aria-label="${name}"] .controls`));
  await t.waitUntil(() => document.querySelector('.readout [aria-labelledby="seen"]:not([aria-busy])'));
}

/** Returns the rows of the table: the time, and the names of the concepts. */
function readRows(t) {
  return t.page
    .locator('details.table tbody tr')
    .evaluateAll((rows) =>
      rows.map((row) => [
        row.querySelector('th').textContent.trim(),
        [...row.querySelector('td').textContent.matchAll(/(\D+) [\d.]+(?:, )?/g)].map(([, name]) => name),
      ]),
    );
}

function timeSlider(t) {
  return t.page.getByRole('slider', { name: en('video_time') });
}

/** Waits until the page shows this time. */
function waitForTime(t, text) {
  return t.waitUntil((text) => document.querySelector('.time')?.textContent.startsWith(text), text);
}

async function recogniseVideo(t) {
  const requests = [];
  t.context.on('request', (request) => requests.push(request));
  await dropVideo(t, 'slides.webm', await readVideo('slides.webm'));
  const rows = await readRows(t);
  checkEqual(
    rows.map(([time]) => time),
    rows.map((_, i) => `0:0${i}`),
    'times',
  );
  check(rows.length >= 5, `${rows.length} frames`);
  check(rows[0][1].includes('insect') && !rows[0][1].includes('pizza'), `at 0:00 ${rows[0][1]}`);
  check(rows[4][1].includes('pizza') && !rows[4][1].includes('insect'), `at 0:04 ${rows[4][1]}`);
  checkEqual(await t.page.locator('.strip img').count(), rows.length, 'pictures below the curves');
  checkEqual(await t.page.locator('path.curve').count(), 5, 'curves');
  // The side bar and the replica make other requests.
  const posts = requests
    .filter((r) => r.method() !== 'GET')
    .map((r) => [new URL(r.url()).pathname, r.postDataBuffer()?.length ?? 0]);
  checkEqual(
    posts.filter(([path, size]) => size > 1000 || path.endsWith('/outputs')),
    [],
    'what was sent',
  );
  await t.waitFor(t.page.getByText(en('look_predicted_device')));
  checkEqual(
    await t.page.locator('.photo video').evaluate((v) => [v.videoWidth > 0, v.error]),
    [true, null],
    'the player',
  );
  await t.page.getByText(en('video_table')).click();
  await t.waitFor(t.button('0:04'));
  await t.checkAccessibility('a video with its table');
  await t.page.getByText(en('video_table')).click();
}

async function stepFrames(t) {
  await t.page.locator('body').click({ position: { x: 1, y: 1 } });
  for (const [key, want] of [
    ['ArrowRight', '0:01'],
    ['ArrowRight', '0:02'],
    ['ArrowLeft', '0:01'],
  ]) {
    await t.press(key);
    await waitForTime(t, want);
  }
  await timeSlider(t).focus();
  await t.press('End');
  await waitForTime(t, '0:0');
  checkEqual(
    Number(await timeSlider(t).getAttribute('aria-valuenow')),
    (await readRows(t)).length - 1,
    'the time at the end',
  );
  await t.press('Home');
  await waitForTime(t, '0:00');
  for (let i = 0; i < 4; i++) await t.press('ArrowRight');
  await waitForTime(t, '0:04');
  check((await timeSlider(t).getAttribute('aria-valuetext')).startsWith('0:04: '), 'what the slider tells');
  await t.waitFor(t.page.locator('.readout .words li', { hasText: 'pizza' }));
  await t.waitUntil(() => document.querySelector('.photo video').currentTime === 4);
  await t.press('Home');
  await t.press(' ');
  await t.waitFor(t.button(en('video_pause')));
  await t.waitUntil(() => document.querySelector('.photo video').currentTime > 1);
  await t.press(' ');
  await t.waitFor(t.button(en('video_play')));
  check(await t.page.locator('.photo video').evaluate((v) => v.paused), 'it plays on');
}

async function pickConcept(t) {
  const concept = t.page.locator('.concept').first();
  const name = await concept.locator('bdi').textContent();
  await concept.click();
  const rangeText = t.page.locator('.where');
  await t.waitFor(rangeText);
  check(
    (await rangeText.textContent()).startsWith(`“${name}” is at 0.3 or above: 0:00–`),
    await rangeText.textContent(),
  );
  check((await t.page.locator('rect.lit').count()) > 0, 'nothing is marked');
  await t.checkAccessibility('a video with a picked concept');
  await concept.click();
  await t.waitForRemoval(rangeText);
}

async function saveFrame(t) {
  await timeSlider(t).focus();
  await t.press('Home');
  for (let i = 0; i < 4; i++) await t.press('ArrowRight');
  await t.waitUntil(
    () => document.querySelector('.photo video').currentTime === 4 && !document.querySelector('.photo video').seeking,
  );
  await t.button(en('video_frame_save')).click();
  await t.button(en('look_show')).click();
  await t.page.waitForURL(/\/\w{32}\/inputs\/\w{32}$/);
  await t.waitFor(t.page.getByText('slides.webm 0:04'));
  const [size, idLength] = await t.page.evaluate(async () => {
    const [, app, , id] = location.pathname.split('/');
    const image = await new Promise((resolve) => {
      const findImage = () => document.querySelector(`img[src*="${id}"], figure img[src], .viewer img[src]`);
      const awaitImage = () => (findImage()?.naturalWidth ? resolve(findImage()) : requestAnimationFrame(awaitImage));
      awaitImage();
    });
    return [[image.naturalWidth, image.naturalHeight], app.length];
  });
  checkEqual(idLength, 32, 'the application');
  check(size[0] > 0 && size[1] > 0, `a picture of ${size}`);
  await t.waitFor(t.page.getByText('pizza').first());
}

async function dropAnimation(t) {
  await dropVideo(t, 'two.gif', gif);
  checkEqual(
    (await readRows(t)).map(([time]) => time),
    ['0:00', '0:01'],
    'times',
  );
  await t.waitFor(t.page.getByText(en('video_pictures')));
  checkEqual(await t.page.locator('.photo video').count(), 0, 'players');
  const pictureSource = () => t.page.locator('.photo img').getAttribute('src');
  const first = await pictureSource();
  await t.press('ArrowRight');
  await waitForTime(t, '0:01');
  check((await pictureSource()) !== first, 'the first picture is still shown');
}

async function dropDamagedVideo(t) {
  await dropVideo(t, 'cut.webm', (await readVideo('slides.webm')).subarray(0, 300));
  const alert = t.page.getByRole('alert');
  await t.waitFor(alert.getByText(en('video_damaged')));
  await t.waitFor(alert.getByText('video damaged: its index is missing or cannot be read'));
  await t.checkAccessibility('a video that is damaged');
}

async function checkNarrowPage(t) {
  await t.page.setViewportSize({ width: 390, height: 844 });
  await t.page.evaluate(() => localStorage.setItem('language', 'de'));
  await t.page.reload();
  await dropVideo(t, 'slides.webm', await readVideo('slides.webm'));
  await t.waitFor(t.page.getByText('Stärkste Konzepte'));
  await t.checkWidth('a video in German');
  check((await readRows(t))[0][1].includes('Insekt'), `names ${(await readRows(t))[0][1]}`);
  await t.checkAccessibility('a narrow video');
  await t.page.evaluate(() => localStorage.setItem('language', 'en'));
  await t.page.reload();
  await t.page.setViewportSize({ width: 1200, height: 800 });
}

/**
 * Checks a film's rows against labels.tsv: one of the listed concepts must be among the first five. One frame of a film may lack them,
 * because the network errs about a compressed frame now and then. Wrong colours or a wrong rotation would change most frames.
 */
async function checkLabels(t, name) {
  await dropVideo(t, name, await readVideo(name, sharedFolder));
  const table = (await readFile(new URL('labels.tsv', sharedFolder), 'utf8')).trim().split('\n').slice(1);
  const expectedRows = table.map((line) => line.split('\t')).filter(([film]) => film === name);
  const rows = await readRows(t);
  checkEqual(rows.length, expectedRows.length, 'frames');
  const misses = [];
  for (const [i, [, ms, , concepts]] of expectedRows.entries()) {
    const [time, names] = rows[i];
    checkEqual(time, `${Math.floor(ms / 60_000)}:${String((ms / 1000) % 60).padStart(2, '0')}`, `time of frame ${i}`);
    if (concepts && !concepts.split('|').some((word) => names.includes(word)))
      misses.push(`at ${time} ${names}, want one of ${concepts}`);
  }
  check(misses.length <= 1, misses.join('; '));
}

async function checkUnplayableVideo(t) {
  await checkLabels(t, 'wmv2.wmv');
  await t.waitFor(t.page.getByText(en('video_pictures')));
  await t.press('ArrowRight');
  await t.press('ArrowRight');
  await waitForTime(t, '0:02');
  await t.button(en('video_frame_save')).click();
  await t.button(en('look_show')).click();
  await t.waitFor(t.page.getByText('wmv2.wmv 0:02'));
}

async function checkRotation(t) {
  await checkLabels(t, 'phone-rotated.mov');
  const strip = await t.page
    .locator('.strip img')
    .first()
    .evaluate((i) => [i.naturalWidth, i.naturalHeight]);
  check(strip[0] < strip[1], `pictures of ${strip}`);
  const player = t.page.locator('.photo :is(video, img)');
  const size = await player.evaluate((p) => [p.videoWidth ?? p.naturalWidth, p.videoHeight ?? p.naturalHeight]);
  checkEqual(size, [202, 360], 'the size of what is shown');
}

async function checkErrors(t) {
  for (const [name, title, frames] of [
    ['truncated.mp4', 'video_damaged', 6],
    ['no-frames.mp4', 'video_damaged', 0],
    ['audio-only.mp4', 'video_damaged', 0],
    ['two-hours.mp4', 'video_large', 0],
    ['bomb-16mp.mp4', 'video_large', 0],
    ['size-change.ts', 'video_unsupported', 0],
  ]) {
    await dropVideo(t, name, await readVideo(name, sharedFolder));
    await t.waitFor(t.page.getByRole('alert').getByText(en(title)));
    checkEqual((await readRows(t)).length, frames, `frames of ${name}`);
  }
}
