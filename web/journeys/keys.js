// Tests all pages by keyboard alone. On every page, Tab reaches each control and leaves it again, and each control has a name and a visible
// focus. The pages' shortcuts do what the design specifies.
import { check, checkEqual, journey, words } from './browser.js';

const m = await words('en');
const bird = { output: { data: { concepts: [{ name: 'bird' }] } } };
const near = {
  input: {
    data: { geo: { geo_point: { latitude: 47, longitude: 9 }, geo_limit: { type: 'withinKilometers', value: 4000 } } },
  },
};
const search = `/search?q=${encodeURIComponent(JSON.stringify([bird, near]))}`;
// Maximum number of stops in addition to the initial controls of a page: lists grow while the focus moves through them.
const maxExtraStops = 160;

await journey(async (arrive) => {
  const t = await arrive({ camera: true });
  let app;
  await t.step('The browser gets a replica of the demonstration', async () => {
    await t.page.goto('/');
    await t.waitUntil(() => localStorage.getItem('copies'));
    app = await t.page.evaluate(() => `/${JSON.parse(localStorage.getItem('copies'))[0].id}`);
  });
  await t.step('The keys of the Inputs page move, select, label, delete and search', () => checkGridKeys(t, app));
  await t.step('The keys of an input open it, show its neighbours and close it', () => checkInputKeys(t, app));
  await t.step('The keys of the map choose its tools', () => checkMapKeys(t, app));
  await t.step('The keys of Label next skip, go back, answer and undo', () => checkNextKeys(t, app));
  await t.step('Holding a key adds pictures of the camera to a concept', () => holdTrainingKey(t, app));
  const pages = [
    '/',
    `${app}/inputs`,
    `${app}${search}`,
    `${app}/next?model=bird-or-insect`,
    `${app}/models`,
    `${app}/models/bird-or-insect`,
  ];
  pages.push(`${app}/concepts`, `/apps${app}`, '/sync', '/account');
  for (const path of pages)
    await t.step(`Tab reaches every control of ${path.replace(app, '/:app').split('?')[0]}`, () => tabThrough(t, path));
});

/** Returns the number of the focused cell of the grid, or -1 if no cell has the focus. */
function focusedCell(t) {
  return t.page.evaluate(() => Number(document.activeElement?.dataset.cell ?? -1));
}

/** Waits until a cell has the focus and the page shows this number of selected pictures. */
function waitForCell(t, cell, selectedCount) {
  return t.waitUntil(
    ([cell, selectedCount]) =>
      Number(document.activeElement?.dataset.cell ?? -1) === cell &&
      document.querySelectorAll('[data-cell][aria-selected=true]').length === selectedCount,
    [cell, selectedCount],
  );
}

async function checkGridKeys(t, app) {
  await t.page.goto(`${app}/inputs`);
  const first = t.page.locator('[data-cell="0"][aria-label]');
  await t.waitFor(first);
  const columns = Number(await t.page.getByRole('grid').getAttribute('aria-colcount'));
  await first.focus();
  await t.press('ArrowRight');
  await waitForCell(t, 1, 0);
  await t.press('ArrowDown');
  await t.waitUntil(() => document.activeElement?.dataset.cell > 1);
  check((await focusedCell(t)) === 1 + columns, `down is ${await focusedCell(t)}, of ${columns} columns`);
  await t.press('Control+Home');
  await waitForCell(t, 0, 0);
  await t.press('x');
  await waitForCell(t, 0, 1);
  await t.press('ArrowRight');
  await t.press('ArrowRight');
  await t.press('Shift+X');
  await waitForCell(t, 2, 3);
  await t.press('x');
  await waitForCell(t, 2, 2);
  await t.press('Escape');
  await waitForCell(t, 2, 0);
  await t.press('Control+a');
  const rowCount = await t.page.evaluate(() => Number(document.querySelector('[role=grid]').ariaRowCount));
  check(rowCount > 0, 'a grid without rows');
  await t.waitFor(t.page.getByRole('toolbar', { name: m('inputs_selection') }));
  await t.press('Escape');
  await t.waitForRemoval(t.page.getByRole('toolbar', { name: m('inputs_selection') }));
  const name = await t.page.evaluate(() => document.activeElement.ariaLabel.split(', ')[0]);
  for (const key of ['l', 'm', 'g']) {
    await t.press(key);
    await t.waitFor(t.page.getByRole('dialog'));
    await t.waitUntil(() => document.activeElement?.closest('[role=dialog]'));
    await t.press('Escape');
    await t.waitUntil(() => !document.querySelector('[role=dialog]'));
    await waitForCell(t, 2, 0); // back where it was, and nothing stays selected
  }
  await t.press('Delete');
  await t.waitFor(t.page.getByRole('gridcell', { name: `${name}` }).locator('.over'));
  await t.button(m('undo')).press('Enter');
  await t.waitUntil(() => !document.querySelector('[data-cell] .over'));
  await t.page.locator('[data-cell="2"]').focus();
  // A selection stays after an action, also if a picture was deleted without a selection before.
  await t.press('x');
  await waitForCell(t, 2, 1);
  await t.press('l');
  await t.waitFor(t.page.getByRole('dialog'));
  await t.press('Escape');
  await t.waitUntil(() => !document.querySelector('[role=dialog]'));
  await waitForCell(t, 2, 1);
  const label = t.page.locator('[data-cell="2"]').getByText('marsh');
  await t.press('l');
  await t.waitFor(t.page.getByRole('dialog'));
  await t.type('marsh');
  await t.press('Enter');
  await t.waitFor(label);
  await t.press('Escape');
  await waitForCell(t, 2, 1);
  await t.press('Control+z');
  await t.waitForRemoval(label);
  await t.press('Escape');
  await waitForCell(t, 2, 0);
  await t.press('s');
  await t.page.waitForURL(/\/inputs\?q=.*/);
  await t.waitUntil(() => /[0-9]/.test(document.querySelector('[data-cell="0"] .score')?.textContent ?? ''));
}

async function checkInputKeys(t, app) {
  await t.page.goto(`${app}/inputs`);
  await t.waitFor(t.page.locator('[data-cell="3"][aria-label]'));
  await t.page.locator('[data-cell="3"]').focus();
  const [third, fourth] = await t.page.evaluate(() =>
    [3, 4].map((n) => document.querySelector(`[data-cell="${n}"] a`).pathname),
  );
  // The page shows the number of the picture in its list once it has found it.
  const waitForInput = async (path, n) => {
    await t.page.waitForURL((url) => url.pathname === path);
    await t.waitUntil((n) => document.querySelector('header p')?.textContent.startsWith(`${n} `), n);
  };
  await t.press('Enter');
  await waitForInput(third, 4);
  await t.press('ArrowRight');
  await waitForInput(fourth, 5);
  await t.press('ArrowLeft');
  await waitForInput(third, 4);
  await t.press('Escape');
  await t.page.waitForURL((url) => url.pathname === `${app}/inputs`);
  await t.waitUntil(() => document.activeElement?.dataset.cell === '3');
}

async function checkMapKeys(t, app) {
  await t.page.goto(`${app}${search}`);
  const tools = t.page.getByRole('toolbar', { name: m('search_draw') });
  await t.waitFor(tools);
  const waitForTool = (n) =>
    t.waitUntil(
      ([label, n]) => document.querySelectorAll(`[aria-label="${label}"] button`)[n]?.ariaPressed === 'true',
      [m('search_draw'), n],
    );
  for (const [key, n] of [
    ['c', 1],
    ['b', 2],
    ['v', 0],
    ['t', 3],
  ]) {
    await t.press(key);
    await waitForTool(n);
  }
}

async function checkNextKeys(t, app) {
  await t.page.goto(`${app}/next?model=bird-or-insect`);
  const currentPicture = () => t.page.evaluate(() => document.querySelector('.queue a.end')?.pathname);
  const pressAndMove = async (key, path) => {
    await t.press(key);
    await t.waitUntil((path) => (document.querySelector('.queue a.end')?.pathname ?? path) !== path, path);
    return currentPicture();
  };
  await t.waitFor(t.page.locator('.queue a.end'));
  const first = await currentPicture();
  const second = await pressAndMove(' ', first);
  checkEqual(await pressAndMove('ArrowLeft', second), first, 'the picture before');
  checkEqual(await pressAndMove('1', first), second, 'the picture after an answer');
  checkEqual(await pressAndMove('z', second), first, 'the picture whose answer is taken back');
  await t.waitUntil(() => document.querySelector('.queue progress').value === 0);
}

async function holdTrainingKey(t, app) {
  await t.page.goto(`${app}/models/bird-or-insect`);
  await t.button(m('models_start_camera')).press('Enter');
  await t.waitUntil(() => document.querySelector('.hold button:not(:disabled)'));
  await t.page.evaluate(() => document.activeElement.blur());
  await t.page.keyboard.down('2');
  await t.waitUntil(() => Number(document.querySelectorAll('.hold [data-added]')[1]?.dataset.added) > 0);
  await t.page.keyboard.up('2');
  checkEqual(
    await t.page.evaluate(() => document.querySelectorAll('.hold .held').length),
    0,
    'keys that are held still',
  );
}

/** Opens a page and presses Tab through it, again if the page changed meanwhile, as one does that is still loading. */
async function tabThrough(t, path) {
  for (;;) {
    const { faults, missed, hasChanged } = await tabOnce(t, path);
    checkEqual(faults, [], 'faults');
    if (missed.length === 0) return;
    check(hasChanged, `Tab does not come by ${missed}`);
  }
}

/** Presses Tab from the start of a page until the focus leaves the page or returns to a control. */
async function tabOnce(t, path) {
  await t.page.goto(path);
  await t.waitUntil(() => document.querySelector('main h1') && !document.querySelector('[aria-busy="true"]'));
  const controlCount = await t.page.evaluate(() => {
    globalThis.stops = [];
    document.activeElement?.blur();
    const tabbable = 'a[href], button, input, select, textarea, summary, [tabindex], [contenteditable=true]';
    const isTabbable = (e) =>
      e.tabIndex >= 0 && !e.disabled && !e.closest('[inert]') && e.checkVisibility({ visibilityProperty: true });
    // Tab stops at one radio button of a group.
    const wasVisited = (e) => globalThis.stops.some((s) => s === e || (e.type === 'radio' && s.name === e.name));
    const findControls = () => [...document.querySelectorAll(tabbable)].filter(isTabbable);
    const controls = findControls();
    globalThis.compareControls = () => {
      const now = findControls();
      return {
        missed: controls.filter((e) => now.includes(e) && !wasVisited(e)).map((e) => e.outerHTML.slice(0, 200)),
        hasChanged: now.length !== controls.length || now.some((e, n) => e !== controls[n]),
      };
    };
    return controls.length;
  });
  check(controlCount > 0, 'there are no controls');
  const faults = [];
  for (let stops = 0; stops < controlCount + maxExtraStops; stops++) {
    await t.press('Tab');
    const stop = await t.page.evaluate(describeFocus);
    if (!stop) break;
    if (stop.fault) faults.push(`${stop.description}: ${stop.fault}`);
  }
  return { faults, ...(await t.page.evaluate(() => globalThis.compareControls())) };
}

/**
 * In the page: describes the focused element and its fault, if it has one. Returns undefined if the focus has left the page or has been
 * here before.
 */
function describeFocus() {
  const e = document.activeElement;
  if (!e || e === document.body || globalThis.stops.includes(e)) return undefined;
  globalThis.stops.push(e);
  const labels = [...(e.labels ?? [])].map((l) => l.textContent);
  const labelledBy = (e.getAttribute('aria-labelledby') ?? '')
    .split(' ')
    .map((id) => document.getElementById(id)?.textContent);
  const alt = [...e.querySelectorAll('img')].map((i) => i.alt);
  const name =
    [e.ariaLabel, ...labelledBy, ...labels, e.textContent, e.title, e.placeholder, ...alt]
      .find((text) => text?.trim())
      ?.trim() ?? '';
  const description = `<${e.tagName.toLowerCase()} class="${e.className}"> ${name.slice(0, 40)}`;
  if (!name && e.ariaBusy !== 'true') return { description, fault: 'it has no name' };
  // The focus ring may be drawn around the element, inside it, or around its label or parent.
  const hasRing = (element, pseudo) => {
    const s = getComputedStyle(element, pseudo);
    return (s.outlineStyle !== 'none' && Number.parseFloat(s.outlineWidth) >= 1) || s.boxShadow !== 'none';
  };
  const container = e.labels?.[0] ?? e.parentElement;
  if (!hasRing(e) && !hasRing(e, '::after') && !hasRing(e, '::before') && !hasRing(container))
    return { description, fault: 'one does not see that it has the focus' };
  const box = e.getBoundingClientRect();
  if (box.bottom <= 0 || box.top >= innerHeight || box.right <= 0 || box.left >= innerWidth)
    return { description, fault: 'it is not in the window' };
  return { description };
}
