// Videos on the first page: the browser recognises their concepts, a person steps through them by keys and saves frames, and the page
// explains why it cannot read a file.
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { check, journey, same, words } from './browser.js';
import { drop } from './pictures.js';

const en = await words('en');
const ours = new URL('../../origin/server/video/testdata/', import.meta.url);
const shared = new URL('../../../shared/video/', import.meta.url); // further test films, if the project has them
const types = { webm: 'video/webm', mp4: 'video/mp4', mov: 'video/quicktime', wmv: '', ts: 'video/mp2t' };

// Two pictures of one pixel, for one second each.
const picture = (lzw) => `21f90400640000002c000000000100010000${lzw}0100`;
const gif = Buffer.from(`47494638396101000100800000ff00000000ff${picture('020244')}${picture('02024c')}3b`, 'hex');

await journey(async (arrive) => {
  const t = await arrive();
  await t.step('a dropped video is recognised on the device, frame by frame', () => recognises(t));
  await t.step('keys go from frame to frame, and play', () => steps(t));
  await t.step('a concept shows where it is', () => picks(t));
  await t.step('a frame is saved, and is among the pictures', () => saves(t));
  await t.step('an animation is a video that the browser does not play', () => animates(t));
  await t.step('a damaged video is refused in words', () => refuses(t));
  await t.step('on a narrow page, in German, it fits', () => fits(t));
  if (!existsSync(shared)) return;
  await t.step('every frame shows what its table says', () => labels(t, 'slides-h264.mp4'));
  await t.step('a video that the browser cannot play shows its frames', () => unplayable(t));
  await t.step('a video that lies on its side stands upright', () => upright(t));
  await t.step('a video that cannot be read says why', () => says(t));
});

/** The bytes of a video. */
function bytes(name, folder = ours) {
  return readFile(new URL(name, folder));
}

/** Drops a video on the page, and waits until it has been recognised or refused. */
async function put(t, name, data) {
  if (!t.page.url().endsWith('/look')) await t.page.goto('/look');
  await t.seen(t.page.locator('.scroll .drop'));
  await drop(t.page.locator('.scroll').first(), [[name, data, types[name.split('.').at(-1)] ?? 'image/gif']]);
  await t.seen(t.page.locator(`.stage[aria-label="${name}"] .controls`));
  await t.until(() => document.querySelector('.readout [aria-labelledby="seen"]:not([aria-busy])'));
}

/** The rows of the table: the time, and the names of the concepts. */
function rows(t) {
  return t.page
    .locator('details.table tbody tr')
    .evaluateAll((all) =>
      all.map((row) => [
        row.querySelector('th').textContent.trim(),
        [...row.querySelector('td').textContent.matchAll(/(\D+) [\d.]+(?:, )?/g)].map(([, name]) => name),
      ]),
    );
}

function time(t) {
  return t.page.getByRole('slider', { name: en('video_time') });
}

/** Waits until the page shows this time. */
function at(t, text) {
  return t.until((text) => document.querySelector('.time')?.textContent.startsWith(text), text);
}

async function recognises(t) {
  const asked = [];
  t.context.on('request', (request) => asked.push(request));
  await put(t, 'slides.webm', await bytes('slides.webm'));
  const all = await rows(t);
  same(
    all.map(([when]) => when),
    all.map((_, i) => `0:0${i}`),
    'times',
  );
  check(all.length >= 5, `${all.length} frames`);
  check(all[0][1].includes('insect') && !all[0][1].includes('pizza'), `at 0:00 ${all[0][1]}`);
  check(all[4][1].includes('pizza') && !all[4][1].includes('insect'), `at 0:04 ${all[4][1]}`);
  same(await t.page.locator('.strip img').count(), all.length, 'pictures below the curves');
  same(await t.page.locator('path.curve').count(), 5, 'curves');
  // The side bar and the copy make other requests.
  const posted = asked
    .filter((r) => r.method() !== 'GET')
    .map((r) => [new URL(r.url()).pathname, r.postDataBuffer()?.length ?? 0]);
  same(
    posted.filter(([path, size]) => size > 1000 || path.endsWith('/outputs')),
    [],
    'what was sent',
  );
  await t.seen(t.page.getByText(en('look_here')));
  same(await t.page.locator('.photo video').evaluate((v) => [v.videoWidth > 0, v.error]), [true, null], 'the player');
  await t.page.getByText(en('video_table')).click();
  await t.seen(t.button('0:04'));
  await t.look('a video with its table');
  await t.page.getByText(en('video_table')).click();
}

async function steps(t) {
  await t.page.locator('body').click({ position: { x: 1, y: 1 } });
  for (const [key, want] of [
    ['ArrowRight', '0:01'],
    ['ArrowRight', '0:02'],
    ['ArrowLeft', '0:01'],
  ]) {
    await t.press(key);
    await at(t, want);
  }
  await time(t).focus();
  await t.press('End');
  await at(t, '0:0');
  same(Number(await time(t).getAttribute('aria-valuenow')), (await rows(t)).length - 1, 'the time at the end');
  await t.press('Home');
  await at(t, '0:00');
  for (let i = 0; i < 4; i++) await t.press('ArrowRight');
  await at(t, '0:04');
  check((await time(t).getAttribute('aria-valuetext')).startsWith('0:04: '), 'what the slider tells');
  await t.seen(t.page.locator('.readout .words li', { hasText: 'pizza' }));
  await t.until(() => document.querySelector('.photo video').currentTime === 4);
  await t.press('Home');
  await t.press(' ');
  await t.seen(t.button(en('video_pause')));
  await t.until(() => document.querySelector('.photo video').currentTime > 1);
  await t.press(' ');
  await t.seen(t.button(en('video_play')));
  check(await t.page.locator('.photo video').evaluate((v) => v.paused), 'it plays on');
}

async function picks(t) {
  const concept = t.page.locator('.concept').first();
  const name = await concept.locator('bdi').textContent();
  await concept.click();
  const where = t.page.locator('.where');
  await t.seen(where);
  check((await where.textContent()).startsWith(`“${name}” is at 0.3 or above: 0:00–`), await where.textContent());
  check((await t.page.locator('rect.lit').count()) > 0, 'nothing is marked');
  await t.look('a video with a picked concept');
  await concept.click();
  await t.gone(where);
}

async function saves(t) {
  await time(t).focus();
  await t.press('Home');
  for (let i = 0; i < 4; i++) await t.press('ArrowRight');
  await t.until(
    () => document.querySelector('.photo video').currentTime === 4 && !document.querySelector('.photo video').seeking,
  );
  await t.button(en('video_save')).click();
  await t.button(en('look_show')).click();
  await t.page.waitForURL(/\/\w{32}\/inputs\/\w{32}$/);
  await t.seen(t.page.getByText('slides.webm 0:04'));
  const [size, kind] = await t.page.evaluate(async () => {
    const [, app, , id] = location.pathname.split('/');
    const image = await new Promise((resolve) => {
      const found = () => document.querySelector(`img[src*="${id}"], figure img[src], .viewer img[src]`);
      const look = () => (found()?.naturalWidth ? resolve(found()) : requestAnimationFrame(look));
      look();
    });
    return [[image.naturalWidth, image.naturalHeight], app.length];
  });
  same(kind, 32, 'the application');
  check(size[0] > 0 && size[1] > 0, `a picture of ${size}`);
  await t.seen(t.page.getByText('pizza').first());
}

async function animates(t) {
  await put(t, 'two.gif', gif);
  same(
    (await rows(t)).map(([when]) => when),
    ['0:00', '0:01'],
    'times',
  );
  await t.seen(t.page.getByText(en('video_pictures')));
  same(await t.page.locator('.photo video').count(), 0, 'players');
  const shown = () => t.page.locator('.photo img').getAttribute('src');
  const first = await shown();
  await t.press('ArrowRight');
  await at(t, '0:01');
  check((await shown()) !== first, 'the first picture is still shown');
}

async function refuses(t) {
  await put(t, 'cut.webm', (await bytes('slides.webm')).subarray(0, 300));
  const alert = t.page.getByRole('alert');
  await t.seen(alert.getByText(en('video_damaged')));
  await t.seen(alert.getByText('video damaged: its index is missing or cannot be read'));
  await t.look('a video that is damaged');
}

async function fits(t) {
  await t.page.setViewportSize({ width: 390, height: 844 });
  await t.page.evaluate(() => localStorage.setItem('language', 'de'));
  await t.page.reload();
  await put(t, 'slides.webm', await bytes('slides.webm'));
  await t.seen(t.page.getByText('Stärkste Konzepte'));
  await t.fits('a video in German');
  check((await rows(t))[0][1].includes('Insekt'), `names ${(await rows(t))[0][1]}`);
  await t.look('a narrow video');
  await t.page.evaluate(() => localStorage.setItem('language', 'en'));
  await t.page.reload();
  await t.page.setViewportSize({ width: 1200, height: 800 });
}

/**
 * Checks a film's rows against labels.tsv: one of the listed concepts must be among the first five. One frame of a film may lack them,
 * because the network errs about a compressed frame now and then. Wrong colours or a wrong rotation would change most frames.
 */
async function labels(t, name) {
  await put(t, name, await bytes(name, shared));
  const table = (await readFile(new URL('labels.tsv', shared), 'utf8')).trim().split('\n').slice(1);
  const wanted = table.map((line) => line.split('\t')).filter(([film]) => film === name);
  const all = await rows(t);
  same(all.length, wanted.length, 'frames');
  const missed = [];
  for (const [i, [, ms, , some]] of wanted.entries()) {
    const [when, names] = all[i];
    same(when, `${Math.floor(ms / 60_000)}:${String((ms / 1000) % 60).padStart(2, '0')}`, `time of frame ${i}`);
    if (some && !some.split('|').some((word) => names.includes(word)))
      missed.push(`at ${when} ${names}, want one of ${some}`);
  }
  check(missed.length <= 1, missed.join('; '));
}

async function unplayable(t) {
  await labels(t, 'wmv2.wmv');
  await t.seen(t.page.getByText(en('video_pictures')));
  await t.press('ArrowRight');
  await t.press('ArrowRight');
  await at(t, '0:02');
  await t.button(en('video_save')).click();
  await t.button(en('look_show')).click();
  await t.seen(t.page.getByText('wmv2.wmv 0:02'));
}

async function upright(t) {
  await labels(t, 'phone-rotated.mov');
  const strip = await t.page
    .locator('.strip img')
    .first()
    .evaluate((i) => [i.naturalWidth, i.naturalHeight]);
  check(strip[0] < strip[1], `pictures of ${strip}`);
  const player = t.page.locator('.photo :is(video, img)');
  const shown = await player.evaluate((p) => [p.videoWidth ?? p.naturalWidth, p.videoHeight ?? p.naturalHeight]);
  same(shown, [202, 360], 'the size of what is shown');
}

async function says(t) {
  for (const [name, title, frames] of [
    ['truncated.mp4', 'video_damaged', 6],
    ['no-frames.mp4', 'video_damaged', 0],
    ['audio-only.mp4', 'video_damaged', 0],
    ['two-hours.mp4', 'video_large', 0],
    ['bomb-16mp.mp4', 'video_large', 0],
    ['size-change.ts', 'video_unsupported', 0],
  ]) {
    await put(t, name, await bytes(name, shared));
    await t.seen(t.page.getByRole('alert').getByText(en(title)));
    same((await rows(t)).length, frames, `frames of ${name}`);
  }
}
