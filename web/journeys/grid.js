// Traces the grid of very many pictures, while a person scrolls at reading speed and jumps from day to day. It measures how long tasks of
// the page compute, which frames were not drawn in time, how soon the first screen appears, and how much memory the page needs.
//
// INPUTS is the number of pictures. If the application has fewer, the script first adds parts of the samples. Times are processor times. A
// task may take three times its limit, because busy neighbours share the processor's caches. With ALONE, on a machine without other work,
// the limits are strict, and frames and seconds are checked too.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { check, isTimed, journey, origin, timeoutMillis, words } from './browser.js';
import { caller, newKey } from './demonstration.js';
import { fillInputs } from './pictures.js';
import { memory, startTrace } from './trace.js';

const m = await words('en');
const inputs = Number(process.env.INPUTS ?? 600);
const size = { width: 1440, height: 900 };
const margin = process.env.ALONE ? 1 : 3;
const maxTaskMillis = 50 * margin; // ms of work in one task that a person notices
const smoothTaskMillis = 8 * margin; // ms of work in one task that leaves enough time to draw the frame; 1 task in 100 may take longer
const pixels = process.env.ALONE ? 12_000 : 4_800; // number of pixels to scroll
const maxMegabytes = 400; // MB that the page may allocate

await journey(async (arrive) => {
  const first = await arrive();
  let app;
  await first.step(`The application has ${inputs} pictures`, async () => {
    await first.page.goto('/apps');
    await first.waitFor(first.heading(m('keys')));
    app = new URL(first.page.url()).pathname.split('/')[2];
    const callApi = caller(origin, await newKey(first, app));
    const { counts } = await callApi('GET', '/inputs/status');
    await fillInputs(callApi, counts.processed, inputs, inputAt);
  });
  await first.context.close();

  const reader = await arrive({ storage: { declined: JSON.stringify([app]) } });
  await measureGrid(reader, app, 'at the origin');
  await reader.context.close();

  const replicaUser = await arrive();
  await replicaUser.step('The browser downloads a replica', async () => {
    await replicaUser.page.goto('/sync');
    await replicaUser.page
      .locator('li[aria-current]', { hasText: m('phase_current') })
      .first()
      .waitFor({ timeout: timeoutMillis + 10 * inputs });
  });
  await measureGrid(replicaUser, app, 'with a replica');
});

/** Looks at the grid, scrolls in it and jumps. */
async function measureGrid(t, app, setup) {
  let pid;
  await t.page.setViewportSize(size);
  await t.step(`The grid shows its first screen ${setup}`, async () => {
    const showGrid = async () => {
      await t.page.goto(`/${app}/inputs`);
      await waitForPictures(t);
    };
    const startTime = performance.now();
    await showGrid();
    const seconds = (performance.now() - startTime) / 1000;
    const trace = await startTrace(t); // starting a trace takes time
    await showGrid();
    const { tasks, pid: tracedPid } = await trace.end();
    pid = tracedPid;
    printFigures('first screen', { seconds, work: sum(tasks) / 1000 });
    if (isTimed) check(sum(tasks) < 2000, `${sum(tasks)} ms of work for the first screen`);
    if (process.env.ALONE) check(seconds < 2, `${seconds} s until the first screen`);
  });
  await t.step(`The grid scrolls smoothly ${setup}`, async () => {
    const { drawn, dropped } = await checkSmoothness(t, `scrolling ${setup}`, (trace) => trace.scroll(pixels, 1200));
    if (process.env.ALONE) check(dropped * 100 <= drawn + dropped, `${dropped} frames of ${drawn + dropped} dropped`);
  });
  await t.step(`The grid jumps between days smoothly ${setup}`, () =>
    checkSmoothness(t, `jumping ${setup}`, () => jumpThroughDays(t)),
  );
  await t.step(`The grid needs little memory ${setup}`, async () => {
    const { resident, own } = await memory(pid);
    const [heap, nodes] = await t.page.evaluate(() => [
      performance.memory.usedJSHeapSize / 2 ** 20,
      document.querySelectorAll('*').length,
    ]);
    printFigures('memory', { resident, own, heap, nodes });
    if (isTimed) check(own < maxMegabytes, `${own} MB`);
    check(nodes < 4000, `${nodes} elements`);
  });
}

/** Traces while `work` runs, checks that no task is too long for smooth drawing, and returns the number of frames drawn and dropped. */
async function checkSmoothness(t, label, work) {
  const trace = await startTrace(t);
  await work(trace);
  const { tasks, drawn, dropped, late, events } = await trace.end();
  const [longest, p99] = [Math.max(...tasks), quantile(tasks, 0.99)];
  printFigures(label, {
    tasks: tasks.length,
    longest,
    p99,
    work: sum(tasks) / 1000,
    drawn,
    dropped,
    late,
  });
  if (process.env.TRACE)
    await writeFile(join(process.env.TRACE, `${label.replaceAll(' ', '-')}.json`), JSON.stringify(events));
  if (isTimed) check(longest < maxTaskMillis, `a task of ${longest} ms`);
  if (isTimed) check(p99 < smoothTaskMillis, `1 task in 100 takes ${p99} ms or more`);
  await waitForPictures(t);
  return { drawn, dropped };
}

/** Jumps to places all over the list: by the list of days at its side if it exists, otherwise by keys. */
async function jumpThroughDays(t) {
  const days = t.page.getByRole('slider', { name: m('inputs_days') });
  const box = (await days.count()) ? await days.boundingBox() : undefined;
  for (const share of [0.9, 0.1, 0.5, 0.7, 0.3]) {
    if (box) await t.page.mouse.click(box.x + box.width / 2, box.y + box.height * share);
    else await t.page.locator('.port').evaluate((port, share) => port.scrollTo(0, share * port.scrollHeight), share);
    await waitForPictures(t);
  }
}

/** Waits until every tile in the window shows its picture. */
async function waitForPictures(t) {
  await t.waitUntil(() => {
    const tiles = [...document.querySelectorAll('[data-cell]')].filter((tile) => {
      const { top, bottom } = tile.getBoundingClientRect();
      return bottom > 0 && top < innerHeight;
    });
    return (
      tiles.length > 11 && tiles.every((tile) => tile.querySelector('img')?.complete && tile.querySelector('img').src)
    );
  });
}

/** Returns the nth input to add. Every third input has a label. */
function inputAt(n, image) {
  return {
    id: `g${n}`,
    data: { image, metadata: { name: `IMG_${n}.jpg` }, ...(n % 3 || { concepts: [{ id: 'Ada' }] }) },
  };
}

function sum(numbers) {
  return Math.round(numbers.reduce((a, b) => a + b, 0));
}

/** Returns the value at the quantile `share`. */
function quantile(numbers, share) {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length * share)] ?? 0;
}

/** Prints figures. */
function printFigures(label, figures) {
  const texts = Object.entries(figures).map(([name, n]) => `${name} ${Math.round(n * 100) / 100}`);
  console.log(`ok   ${label}: ${texts.join(', ')}`);
}
