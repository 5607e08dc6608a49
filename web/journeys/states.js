// States of the pages that have no content to show: each one names the missing thing and offers a way on.
import { fileURLToPath } from 'node:url';
import { check, checkEqual, journey, words } from './browser.js';
import { lighthouse } from './pictures.js';

const conceptClause = (name) => ({ output: { data: { concepts: [{ name }] } } });
const q = (ands) => `?q=${encodeURIComponent(JSON.stringify(ands))}`;

/** Opens an address whose filters cannot be read, and clears them. */
async function clearUnreadFilters(t, m, app) {
  for (const page of ['inputs', 'search']) {
    await t.page.goto(`/${app}/${page}?q=%5B%7B%22input`);
    await t.waitFor(t.heading(m('search_link_unreadable')));
    checkEqual(await t.page.locator('[role=gridcell], .hits').count(), 0, 'pictures for filters that cannot be read');
    await t.checkAccessibility(`${page} with filters that cannot be read`);
    await t.button(m('search_clear')).click();
    await t.waitForRemoval(t.heading(m('search_link_unreadable')));
  }
}

/** Searches by two filters that match nothing, so that removing one of them does not help. */
async function clearEmptySearch(t, m, app) {
  await t.page.goto(`/${app}/search${q([conceptClause('no such thing'), conceptClause('nor this')])}`);
  await t.waitFor(t.heading(m('search_none')));
  await t.button(m('search_clear')).click();
  await t.waitFor(t.page.locator('.hits img'));
}

/** Opens pages of an application that does not exist, and an address that no page has: the side bar and a link lead on. */
async function openMissingPages(t, m, app) {
  const none = 'f'.repeat(32);
  for (const path of [`/${none}/inputs`, `/${none}/search`, `/${none}/models/sails`, `/apps/${none}`]) {
    await t.page.goto(path);
    await t.waitFor(t.heading(m('error_missing')));
    checkEqual(
      await t.page
        .locator('main')
        .getByRole('button', { name: m('try_again') })
        .count(),
      0,
      `${path}: tries in vain`,
    );
    await t.checkAccessibility(path);
    await t.link(m('not_found_home'), t.page.locator('main')).click();
    await t.page.waitForURL(`**/apps/${app}`);
  }
  const response = await t.page.goto('/no/such/page');
  checkEqual(response.status(), 404, 'the status of an address without a page');
  await t.waitFor(t.heading(m('not_found')));
  await t.checkAccessibility('no such page');
  await t.page.locator(`aside nav a[href="/${app}/inputs"]`).click();
  await t.waitFor(t.page.locator('[role=gridcell] a'));
  const otherFaults = t.takeFaults().filter((fault) => !fault.includes(' a status of 404 '));
  checkEqual(otherFaults, [], 'faults other than those refusals');
}

/** Checks that without a network the side bar has the same entries, and that a page that needs the server keeps its frame. */
async function goOffline(t, m, app) {
  const nav = t.page.locator('aside nav');
  const entries = async () => {
    await t.waitFor(nav.locator(`a[href="/${app}/inputs"]`)); // once the applications are known
    return nav.locator('a').evaluateAll((links) => links.map((a) => a.pathname));
  };
  await t.page.goto('/sync');
  await t.waitFor(t.page.getByText(m('look_stored')));
  const onlineEntries = await entries();
  await t.setOffline(true);
  await t.page.reload();
  await t.waitFor(t.page.getByText(m('sync_summary_offline_confirmed')));
  checkEqual(await entries(), onlineEntries, 'the entries of the side bar without a network');
  await t.page.getByText(m('sync_details'), { exact: true }).click();
  const contact = t.page.locator('.kv dt', { hasText: m('sync_contact') }).locator('+ dd');
  await t.waitFor(contact.locator('time'));
  await t.link(m('applications'), nav).click();
  await t.waitFor(t.heading(m('error_offline')));
  await t.checkAccessibility('applications without a network');
  await nav.locator(`a[href="/${app}/inputs"]`).click();
  await t.waitFor(t.page.locator('[role=gridcell] a'));
  await t.setOffline(false);
}

/** Checks that the list of shortcuts has the shortcuts of the current page, in the current language. */
async function checkShortcuts(t, m, app) {
  const pages = { models: ['models_new'], concepts: ['concepts_new', 'concepts_filter'], sync: [] };
  for (const [page, messages] of Object.entries(pages)) {
    await t.page.goto(page === 'sync' ? '/sync' : `/${app}/${page}`);
    await t.waitFor(t.page.locator('main h1'));
    await t.press('?');
    const dialog = t.dialog(m('shortcuts'));
    await t.waitFor(dialog.locator('dt'));
    checkEqual(
      await dialog.locator('dd').allTextContents(),
      ['shortcuts', ...messages].map((message) => m(message)),
      `the keys of ${page}`,
    );
    await t.press('Escape');
    await t.waitForRemoval(dialog);
  }
}

/** Checks that the table strikes through a label of an absent concept. */
async function checkAbsentLabel(t, m, app) {
  await t.page.goto(`/${app}/inputs${q([{ input: { data: { concepts: [{ id: 'bird', value: false }] } } }])}`);
  await t.button(m('inputs_table')).click();
  const label = t.page.locator('.said .not bdi').first();
  await t.waitFor(label);
  checkEqual(
    await label.evaluate((e) => getComputedStyle(e).textDecorationLine),
    'line-through',
    'the line of an absent label',
  );
}

/** Deletes a picture, and checks that its tile has no controls and that the next picture has the focus. */
async function deletePicture(t, m, app) {
  await t.page.goto(`/${app}/inputs`);
  const tile = t.page.locator('[data-cell="3"]');
  await tile.locator('.ck').click();
  await t.press('Delete');
  await t.waitFor(t.page.locator('.going[data-cell="3"]'));
  await t.waitUntil(() => document.activeElement?.dataset.cell === '4');
  checkEqual(await t.page.locator('.going .ck').count(), 0, 'controls on a deleted picture');
  await t.button(m('undo')).click();
  await t.waitForRemoval(t.page.locator('.going'));
}

/** Checks that on a narrow page the search field has full width, and that the names of a picture are below their languages. */
async function checkNarrowPage(t, m, app) {
  await t.page.setViewportSize({ width: 360, height: 740 });
  await t.page.goto(`/${app}/inputs`);
  const searchField = t.field(m('inputs_find')).first();
  await t.waitFor(searchField);
  check((await searchField.boundingBox()).width > 300, 'the search field is narrow');
  await searchField.fill('bird');
  await t.page.getByRole('option').first().click();
  await t.page.waitForURL('**/inputs?q=**');
  await t.checkAccessibility('a search on a narrow page');
  for (const [width, languages] of [
    [360, 2],
    [1440, 3],
  ]) {
    await t.page.setViewportSize({ width, height: 900 });
    await t.page.goto('/look');
    await t.button('Bee on a petal').first().click();
    await t.waitFor(t.page.locator('.words li'));
    const leftEdges = (elements) => elements.map((e) => Math.round(e.getBoundingClientRect().left)).filter(Boolean);
    const names = await t.page.locator('.words li').first().locator('.name, .tr').evaluateAll(leftEdges);
    checkEqual(names.length, languages, `languages at ${width} px`);
    const heads = await t.page
      .locator('.heads button')
      .evaluateAll((elements) =>
        elements
          .map(
            (e) =>
              e.getBoundingClientRect().width &&
              Math.round(e.getBoundingClientRect().left + parseFloat(getComputedStyle(e).paddingLeft)),
          )
          .filter(Boolean),
      );
    checkEqual(heads, names, `where languages and names begin at ${width} px`);
  }
  await t.page.setViewportSize({ width: 1200, height: 800 });
}

/** Drops a picture before the recogniser has loaded. The page shows the picture at once, and analyses it when the recogniser is ready. */
async function dropBeforeLoad(arrive, m) {
  const t = await arrive({ storage: { looked: 'yes' } });
  let release;
  const gate = new Promise((resolve) => {
    release = resolve;
  });
  await t.page.route('**/runtime/**.wasm*', async (route) => {
    await gate;
    await route.continue().catch(() => {}); // the page may be closed
  });
  await t.step('The page accepts a picture before the recogniser has loaded', async () => {
    await t.page.goto('/look');
    const chooseButton = t.button(m('look_choose'));
    await t.waitFor(chooseButton);
    checkEqual(await chooseButton.isEnabled(), true, 'whether pictures can be chosen at once');
    await t.page
      .locator('input[type=file][multiple]')
      .first()
      .setInputFiles(fileURLToPath(new URL(`../samples/${lighthouse}`, import.meta.url)));
    await t.waitFor(t.page.locator('.photo img'));
    release();
    await t.waitFor(t.page.locator('.readout .words li'));
  });
  await t.context.close();
}

/** Checks that in a browser that denies storage, the pages work for as long as they are open. */
async function denyStorage(arrive, m, app) {
  const t = await arrive();
  await t.context.addInitScript(() => {
    const refuse = () => {
      throw new DOMException('storage is off', 'SecurityError');
    };
    for (const name of ['localStorage', 'sessionStorage', 'indexedDB', 'caches'])
      Object.defineProperty(globalThis, name, { get: refuse });
    for (const name of ['getDirectory', 'estimate', 'persist', 'persisted'])
      navigator.storage[name] = async () => refuse();
  });
  await t.step('The pages work in a browser that denies them storage', async () => {
    await t.page.goto('/look');
    await t.waitFor(t.button(m('look_choose')));
    await t.page.goto(`/${app}/inputs`);
    await t.waitFor(t.page.locator('[role=gridcell] a'));
    await t.page.goto('/sync');
    await t.waitFor(t.heading(m('sync_devices_title')));
  });
  await t.context.close();
}

await journey(async (arrive) => {
  const m = await words('en');
  await dropBeforeLoad(arrive, m);
  const t = await arrive();
  await t.page.goto('/');
  await t.waitUntil(() => localStorage.getItem('copies'));
  const app = await t.page.evaluate(() => JSON.parse(localStorage.getItem('copies'))[0].id);
  await denyStorage(arrive, m, app);
  await t.step('The page shows no pictures for filters that it cannot read, and clears them', () =>
    clearUnreadFilters(t, m, app),
  );
  await t.step('The page for a missing application or an unknown URL links to an existing page', () =>
    openMissingPages(t, m, app),
  );
  await t.step('The table strikes through the label of an absent concept', () => checkAbsentLabel(t, m, app));
  await t.step('The tile of a deleted picture has no controls, and the next tile gets the focus', () =>
    deletePicture(t, m, app),
  );
  await t.step('A narrow page has a wide search field, and shows names below their languages', () =>
    checkNarrowPage(t, m, app),
  );
  await t.step('The list of shortcuts has only the shortcuts of its page', () => checkShortcuts(t, m, app));
  await t.step('Without a network, the side bar has the same entries', () => goOffline(t, m, app));
  await t.step('A search without results offers to clear its filters', () => clearEmptySearch(t, m, app));
});
