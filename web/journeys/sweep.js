// Checks every page at every size, in languages of both directions, light and dark. axe finds nothing. No text is cut off or outside its
// box. No button, tab or title of a page has two lines. No page scrolls sideways. Language and direction are right. A width of 320 px
// corresponds to a zoom of 400 %.
//
//     node sweep.js        each page at each size, in each language and in each colour once
//     node sweep.js all    all combinations, eight times as many; further arguments: only pages with one of them in their names
//
// On a busy machine, Chromium sometimes stops drawing a page that uses WebGL by software. Therefore the browser has no WebGL here, and the
// pages draw their maps as SVG. finding.js uses the maps with WebGL.
//
// If SWEPT names a folder, a picture of each checked page is stored there.
import { join } from 'node:path';
import { check, checkEqual, contrast, journey, origin, setOrigin, words } from './browser.js';
import { caller, newKey } from './demonstration.js';

const allCombinations = process.argv.includes('all');
const nameFilters = process.argv.slice(2).filter((word) => word !== 'all');
const sizes = [
  { width: 360, height: 740 },
  { width: 820, height: 1180 },
  { width: 1440, height: 900 },
  { width: 2400, height: 1350 },
  { width: 320, height: 256 }, // 1280 by 1024 at 400 %
];
const languages = { en: 'ltr', de: 'ltr', ja: 'ltr', ar: 'rtl' };
const colours = ['light', 'dark'];

// WCAG 2.2 AA requires targets of 24 px. axe checks this only if the rule is enabled.
const allRules = { rules: { 'target-size': { enabled: true } } };

const bird = { output: { data: { concepts: [{ name: 'bird' }] } } };
const near = {
  input: {
    data: { geo: { geo_point: { latitude: 47, longitude: 9 }, geo_limit: { type: 'withinKilometers', value: 4000 } } },
  },
};
const q = (ands) => `?q=${encodeURIComponent(JSON.stringify(ands))}`;
const press = (message) => (t, m) => t.button(m(message)).first().click();

/** The pages of a demonstration, each with the steps before it is checked. */
const pages = {
  look: ['/'],
  inputs: ['/:app/inputs'],
  table: ['/:app/inputs', press('inputs_table')],
  map: ['/:app/inputs', press('inputs_map')],
  none: [`/:app/inputs${q([{ ...bird, input: { data: { concepts: [{ name: 'no such thing' }] } } }])}`],
  adding: ['/:app/inputs#upload', (t) => t.waitFor(t.page.getByRole('dialog'))],
  selected: ['/:app/inputs', selectInput],
  input: ['/:app/inputs/:input'],
  search: [`/:app/search${q([bird, near])}`],
  next: ['/:app/next?model=bird-or-insect'],
  models: ['/:app/models'],
  model: ['/:app/models/bird-or-insect'],
  version: ['/:app/models/bird-or-insect/:version'],
  concepts: ['/:app/concepts'],
  applications: ['/apps/:app'],
  sync: ['/sync'],
  account: ['/account'],
  docs: ['/docs', (t) => t.waitFor(t.page.locator('.opblock'))],
};
/** The pages for visitors who are not signed in, at a server that is not a demonstration. */
const signedOutPages = {
  'sign-in': ['/sign-in'],
  'sign-up': ['/sign-up'],
  forgot: ['/forgot'],
  reset: ['/reset'],
  verify: ['/verify'],
};

/** Addresses of missing things, each with the page's message. */
const missingPages = [
  ['/apps/none', 'error_missing'],
  ['/:app/inputs/none', 'input_unknown'],
  ['/:app/models/none', 'models_not_found'],
  ['/:app/models/bird-or-insect/none', 'models_version_not_found'],
  ['/:app/next?model=none', 'models_not_found'],
  ['/no/such/page', 'not_found'],
];

await journey(
  async (arrive) => {
    const t = await arrive({ language: 'en-GB' });
    const names = {};
    await t.step('The browser gets a replica with inputs and a model', () => prepareNames(t, names));
    await t.step('The browser has a font with Japanese characters', () => checkJapaneseFont(t));
    await checkPages(t, pages, names, ['account', 'concepts', 'sync']);
    await t.step('The pages show a message for each missing thing', () => openMissingPages(t, names));
    await t.step('Pages that are left before they have loaded cause no fault', () => hurryThroughPages(t, names));
    await t.step('The browser frees the memory of pages that were left', () => checkMemory(t, names));
    await t.context.close();
    if (!process.env.SIGN_IN) return;
    setOrigin(process.env.SIGN_IN);
    const visitor = await arrive({ language: 'en-GB' });
    await checkPages(visitor, signedOutPages, {}, []); // each page has another view, so no page between is needed
  },
  ['--disable-3d-apis'],
);

/** Waits until the browser has its replica, and finds the ids for the URLs of the pages. */
async function prepareNames(t, names) {
  await t.page.goto('/');
  await t.waitUntil(() => localStorage.getItem('copies'));
  const app = await t.page.evaluate(() => JSON.parse(localStorage.getItem('copies'))[0].id);
  const callApi = caller(origin, await newKey(t, app));
  const { inputs } = await callApi('GET', '/inputs?per_page=1');
  const { model } = await callApi('GET', '/models/bird-or-insect');
  Object.assign(names, { app, input: inputs[0].id, version: model.model_version.id });
}

/** Checks that the browser draws Japanese characters. They are as wide as high, and the boxes of a browser without such a font are narrower. */
async function checkJapaneseFont(t) {
  const width = await t.page.evaluate(() => {
    const context = document.createElement('canvas').getContext('2d');
    context.font = '100px sans-serif';
    return context.measureText('あ').width;
  });
  checkEqual(
    Math.round(width),
    100,
    'the width of a Japanese character of 100 px; is a font missing, such as fonts-noto-cjk?',
  );
}

/**
 * Checks pages, in one language after another. It loads the first page and follows links to the others, so that the copy and the recogniser
 * start only once for each language. Each page is then checked in its sizes and colours.
 */
async function checkPages(t, pageSet, names, detours) {
  const address = (name) => addressOf(pageSet, name, names);
  const selectedPages = Object.entries(pageSet).filter(
    ([name]) => !nameFilters.length || nameFilters.some((filter) => name.includes(filter)),
  );
  let count = 0;
  for (const [code, dir] of Object.entries(languages)) {
    const m = await words(code);
    await t.page.evaluate((code) => localStorage.setItem('language', code), code).catch(() => {});
    let loaded = false;
    for (const [turn, [name, [, prepare]]] of selectedPages.entries()) {
      const checks = combinations(turn, code);
      if (!checks.length) continue;
      const faults = [];
      await t.step(`The page ${name} in ${code} is accessible and cuts no text`, async () => {
        let isOpen = false;
        for (const { size, colour, first } of checks) {
          await t.page.setViewportSize(size);
          await t.page.emulateMedia({ colorScheme: colour });
          if (!isOpen) {
            if (!loaded) await t.page.goto(address(name));
            else await reopenView(t, address(name), detours.map(address));
            [loaded, isOpen] = [true, true];
            await waitForRest(t);
            await prepare?.(t, m);
          }
          await waitForRest(t);
          for (const fault of await findFaults(t, dir, code, first))
            faults.push(`${name}, ${size.width} px, ${code}, ${colour}: ${fault}`);
          if (process.env.SWEPT)
            await t.page.screenshot({ path: join(process.env.SWEPT, `${name}-${code}-${size.width}-${colour}.png`) });
        }
      });
      for (const fault of faults) console.log(fault);
      count += faults.length;
    }
  }
  check(!count, `${count} faults`);
}

/** Returns the path of a page, with ids for the names in it. */
function addressOf(pageSet, name, names) {
  return pageSet[name][0].replace(/:(\w+)/g, (_, key) => names[key] ?? `:${key}`);
}

/** Follows a link to a page. */
async function followLink(t, path) {
  await t.page.evaluate((path) => {
    const link = document.createElement('a');
    link.href = path;
    document.body.append(link);
    link.click();
    link.remove();
  }, path);
}

/** Goes to pages of things that were deleted or never existed. None of them offers to try a model. */
async function openMissingPages(t, names) {
  const m = await words(await t.page.evaluate(() => document.documentElement.lang));
  for (const [path, message] of missingPages) {
    await followLink(t, path.replace(':app', names.app));
    await t.waitFor(t.page.getByText(m(message), { exact: true }));
    await waitForRest(t);
    checkEqual(
      await t.page.getByRole('complementary', { name: m('models_try') }).count(),
      0,
      `${path}: panels to try a model`,
    );
  }
  const otherFaults = t.takeFaults().filter((fault) => !fault.includes(' a status of 404 '));
  checkEqual(otherFaults, [], 'faults but the refusals');
}

/** Leaves each page before it has received all answers. The window changes its size every few pages. */
async function hurryThroughPages(t, names) {
  const paths = Object.keys(pages).map((name) => addressOf(pages, name, names));
  const frames = [0, 1, 4, 9]; // numbers of frames to draw before the next page
  let n = 0;
  for (const stride of [1, 7])
    for (let index = 0; index < paths.length; index++, n++) {
      if (n % 5 === 0) await t.page.setViewportSize(sizes[Math.floor(n / 5) % sizes.length]);
      await followLink(t, paths[(index * stride) % paths.length]);
      await t.page.evaluate(
        async (frames) => {
          for (let n = 0; n < frames; n++) await new Promise(requestAnimationFrame);
        },
        frames[n % frames.length],
      );
    }
  await followLink(t, addressOf(pages, 'models', names));
  await waitForRest(t);
}

/** Visits pages again and again, and checks that the nodes of pages that were left do not stay in memory. */
async function checkMemory(t, names) {
  const browser = await t.context.newCDPSession(t.page);
  await browser.send('Performance.enable');
  const visitPages = async (views) => {
    for (const name of views) {
      await followLink(t, addressOf(pages, name, names));
      await waitForRest(t);
    }
  };
  const countNodes = async () => {
    await visitPages(['account']);
    for (let n = 0; n < 3; n++) await browser.send('HeapProfiler.collectGarbage');
    const { metrics } = await browser.send('Performance.getMetrics');
    return metrics.find(({ name }) => name === 'Nodes').value;
  };
  const pageNames = ['inputs', 'look', 'models', 'model', 'next', 'concepts', 'input', 'search'];
  await visitPages(pageNames);
  const initialNodes = await countNodes();
  for (let n = 0; n < 3; n++) await visitPages(pageNames);
  const extraNodes = (await countNodes()) - initialNodes;
  check(extraNodes < 5000, `${extraNodes} nodes of pages that were left are in memory`); // 24,000 if no page releases its nodes
}

/**
 * Goes to a page by a link. It first visits a page of another view, so that the view is created again and nothing of the previous page
 * remains.
 */
async function reopenView(t, target, detours) {
  const current = new URL(t.page.url()).pathname;
  const detour = detours.find((path) => path !== target && path !== current);
  for (const path of detour ? [detour, target] : [target]) {
    await t.page.evaluate(() => {
      for (const h1 of document.querySelectorAll('h1')) h1.dataset.before = '';
    });
    await followLink(t, path);
    await t.waitUntil(() => document.querySelector('h1') && !document.querySelector('h1[data-before]'));
  }
}

/**
 * The sizes and colours to check for a page in a language. With `all` they are all combinations. Otherwise
 * they are just enough that each size, language and colour of a page occurs once.
 */
function combinations(turn, code) {
  const checks = [];
  const [languageIndex, languageCount] = [Object.keys(languages).indexOf(code), Object.keys(languages).length];
  for (const [n, size] of sizes.entries())
    for (const [k, colour] of colours.entries()) {
      const isSelected =
        languageIndex === (n + turn) % languageCount && k === (n + Math.floor(turn / languageCount)) % colours.length;
      if (allCombinations || isSelected) checks.push({ size, colour, first: k === 0 || !allCombinations });
    }
  return checks;
}

/** Waits until nothing on the page is loading or moving. */
async function waitForRest(t) {
  await t.waitUntil(
    () =>
      document.querySelector('h1') &&
      !document.querySelector('[aria-busy="true"]') &&
      [...document.images].every((i) => i.complete),
  );
  await t.page.evaluate(async () => {
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    await Promise.all(
      document
        .getAnimations()
        .filter((a) => a.effect?.getTiming().iterations !== Number.POSITIVE_INFINITY)
        .map((a) => a.finished.catch(() => {})),
    );
  });
}

/** Returns the faults of the current page. */
async function findFaults(t, dir, code, first) {
  const found = await t.page.evaluate(findCutText);
  const page = await t.page.evaluate(() => [document.documentElement.lang, document.documentElement.dir]);
  if (page[0] !== code || page[1] !== dir) found.push(`it is in ${page}`);
  return [...found, ...(await t.findViolations('html', first ? allRules : contrast))];
}

async function selectInput(t) {
  const cell = t.page.locator('[role=gridcell][data-cell][aria-label]').first();
  await cell.focus();
  await t.press('x');
  await t.press('l');
  await t.waitFor(t.page.getByRole('combobox'));
}

/** In the page: finds a page that is wider than the window, words that are cut off or outside their box, and buttons of two lines. */
function findCutText() {
  const faults = [];
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) faults.push(`${root.scrollWidth} px wide, of ${root.clientWidth}`);
  const addFault = (text, problem) => faults.push(`${problem}: "${text.trim().slice(0, 60)}"`);
  const seen = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const box = node.parentElement;
    if (
      !node.data.trim() ||
      !box.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true })
    )
      continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const textRect = range.getBoundingClientRect();
    if (!textRect.width || !textRect.height) continue;
    const control = box.closest('.btn, [role=tab], header:has(> .end) > h1');
    if (
      control &&
      innerWidth > 320 &&
      !seen.has(control) &&
      new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 1
    ) {
      seen.add(control);
      addFault(node.data, `a ${control.tagName.toLowerCase()} class="${control.className}" has two lines`);
    }
    let block = box;
    while (getComputedStyle(block).display === 'inline' && block !== document.body) block = block.parentElement;
    const blockRect = block.getBoundingClientRect();
    const overflowPixels = Math.max(blockRect.left - textRect.left, textRect.right - blockRect.right);
    let scroller = block;
    while (scroller !== document.body && getComputedStyle(scroller).overflowX === 'visible')
      scroller = scroller.parentElement;
    if (overflowPixels > 1.5 && scroller === document.body && !seen.has(block)) {
      seen.add(block);
      const name = `<${block.tagName.toLowerCase()} class="${block.className}">`;
      addFault(node.data, `${Math.round(overflowPixels)} px are outside of ${name}`);
    }
    for (let ancestor = box; ancestor && ancestor !== document.body; ancestor = ancestor.parentElement) {
      const style = getComputedStyle(ancestor);
      if (style.position === 'fixed' && ancestor !== box) break;
      if (style.overflowX === 'visible' && style.overflowY === 'visible') continue;
      if (/auto|scroll/.test(style.overflowX + style.overflowY)) break; // a person can scroll to it
      const frame = ancestor.getBoundingClientRect();
      if (frame.width <= 2 || frame.height <= 2 || style.clipPath !== 'none') break; // text for screen readers
      if (ancestor.matches('.map, .labels')) break; // a map continues outside its frame
      const outside =
        textRect.right <= frame.left ||
        textRect.left >= frame.right ||
        textRect.bottom <= frame.top ||
        textRect.top >= frame.bottom;
      if (outside) break;
      const cutPixels = Math.max(
        frame.left - textRect.left,
        textRect.right - frame.right,
        frame.top - textRect.top,
        textRect.bottom - frame.bottom,
      );
      if (cutPixels < 1.5 || seen.has(ancestor)) continue;
      const labelElement = ancestor.closest('[title], [aria-label]');
      const hasFullText = labelElement && `${labelElement.title} ${labelElement.ariaLabel}`.includes(node.data.trim());
      if (
        style.textOverflow === 'ellipsis' &&
        (hasFullText || ancestor.closest('[dir=auto], bdi') || ancestor.querySelector('[dir=auto], bdi'))
      )
        continue;
      seen.add(ancestor);
      addFault(
        node.data,
        `${Math.round(cutPixels)} px are cut by <${ancestor.tagName.toLowerCase()} class="${ancestor.className}">`,
      );
    }
  }
  return faults;
}
