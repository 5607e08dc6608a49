// Tests the data of accounts on a shared device: a sign-out with both answers, an offline copy without a network and in sessions of other
// accounts, and the deletion of an account.
import { check, checkEqual, journey, waitForLine, words } from './browser.js';
import { caller, newApp } from './demonstration.js';
import { lighthouse, sample } from './pictures.js';

const en = await words('en');
const operator = { name: 'Ada Olsen', email: 'ada@example.org', password: 'quiet-harbour-41' };
const person = { name: 'Bo Lind', email: 'bo@example.org', password: 'seven-wet-otters' };
const setupLink = /^\s+(http\S+\/sign-up\?setup=\S+)$/;
const name = 'lighthouse.jpg';
const personal = ['account', 'app', 'copies', 'declined', 'leaving', 'looked']; // values of an account in the local storage

async function signUp(t, { name, email, password }) {
  await t.field(en('name')).fill(name);
  await t.field(en('email')).fill(email);
  await t.field(en('password')).fill(password);
  await t.button(en('create_account_do')).click();
  await t.waitUntil(() => localStorage.getItem('account') !== null);
}

async function signIn(t, { email, password }) {
  await t.page.goto('/sign-in');
  await t.field(en('email')).fill(email);
  await t.field(en('password')).fill(password);
  await t.button(en('sign_in')).click();
  await t.waitUntil(() => !location.pathname.startsWith('/sign-'));
}

/** Opens the account's page when its lists are loaded, and clicks Sign out. */
async function startSignOut(t) {
  await t.page.goto('/account');
  for (const list of ['sessions', 'activity']) await t.waitFor(t.page.getByRole('table', { name: en(list) }));
  await t.button(en('sign_out')).click();
}

const question = (t) => t.dialog(en('sign_out_title'));
const value = (t, key) => t.page.evaluate((key) => localStorage.getItem(key), key);
const copies = async (t) => JSON.parse((await value(t, 'copies')) ?? '[]');
const copyRow = (t) => t.page.getByRole('article', { name, exact: true });

/** Opens the application's copy on the page Sync, and waits until it is complete. */
async function join(t, app) {
  await t.page.goto(`/sync?app=${app}`);
  await t.button(en('sync_make_offline')).click();
  await t.waitFor(t.page.locator('li[aria-current]', { hasText: en('phase_current') }));
  await t.waitFor(t.page.getByText(en('look_stored')));
}

async function addLabel(t, concept) {
  await t.field(en('sync_label_for', { name })).focus();
  await t.type(concept);
  await t.press('Enter');
  await t.waitFor(copyRow(t).locator('.own', { hasText: concept }));
}

/** Stores a search, inputs to add again, and a dropped picture, as the views do. */
const storeMore = (t, app) =>
  t.page.evaluate(async (app) => {
    localStorage.setItem(`searches.${app}`, JSON.stringify([{ name: 'towers', q: '[]' }]));
    localStorage.setItem(`again.${app}`, JSON.stringify([{ id: 'x' }]));
    await (await caches.open('dropped-pictures')).put('/a', new Response('picture'));
  }, app);

/** Returns what a script of the page finds on this device. */
const findData = (t) =>
  t.page.evaluate(async () => {
    const stores = [];
    const root = await navigator.storage.getDirectory();
    const folder = await root.getDirectoryHandle('sightline').catch(() => undefined);
    if (folder) for await (const one of folder.keys()) stores.push(one);
    const cached = []; // the stored program has two caches
    for (const name of await caches.keys())
      for (const { url } of await (await caches.open(name)).keys())
        if (!name.startsWith('sightline-') || /^\/(v2|hosted|console)\//.test(new URL(url).pathname)) cached.push(url);
    return {
      stores,
      databases: (await indexedDB.databases()).map((d) => d.name),
      values: Object.keys(localStorage),
      tab: Object.keys(sessionStorage),
      cached,
    };
  });

async function makeCopy(s) {
  const { t } = s;
  await t.page.goto(await waitForLine(setupLink));
  await signUp(t, operator);
  s.app = await newApp(t);
  s.account = await value(t, 'account');
  const key = await t.page.evaluate(async (app) => {
    const { session } = await (await fetch('/console/session')).json();
    const answer = await fetch(`/console/apps/${app}/keys`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Sightline-CSRF': session.csrf },
      body: JSON.stringify({ description: 'journey', scopes: ['All'] }),
    });
    return (await answer.json()).key.key;
  }, s.app);
  s.callApi = caller(new URL(t.page.url()).origin, key);
  await join(t, s.app);
  const file = { name, mimeType: 'image/jpeg', buffer: await sample(lighthouse) };
  await t.page.getByLabel(en('pictures_add'), { exact: true }).setInputFiles(file);
  await t.waitFor(copyRow(t).getByText(en('mark_confirmed'), { exact: true }));
  s.input = (await s.callApi('GET', '/inputs')).inputs[0].id;
  await storeMore(t, s.app);
  checkEqual(
    (await copies(t)).map((c) => [c.id, c.account]),
    [[s.app, s.account]],
    'the copy and its account',
  );
}

async function expire(s) {
  const { t } = s;
  await t.context.clearCookies();
  await t.page.goto('/account');
  await t.waitFor(t.heading(en('sign_in')));
  checkEqual(await value(t, 'account'), s.account, 'the account of the last session');
  await t.setOffline(true);
  await t.page.goto(`/sync?app=${s.app}`);
  await t.waitFor(copyRow(t));
  await t.setOffline(false);
  await signIn(t, operator);
  forgetRefusals(t);
}

async function keep(s) {
  const { t } = s;
  await t.page.goto(`/sync?app=${s.app}`);
  await t.waitFor(t.page.locator('li[aria-current]', { hasText: en('phase_current') }));
  await t.button(en('sync_work_offline')).click();
  await addLabel(t, 'tower');
  await startSignOut(t);
  await t.waitFor(question(t).getByText(`${en('op_input_labels')}: tower`));
  await t.waitFor(question(t).getByText(en('sync_remove_lost', { n: '1' })));
  await t.waitFor(t.button(en('sign_out_keep'), question(t)));
  await t.checkAccessibility('a sign-out with changes that wait');
  await t.press('Escape');
  await t.waitForRemoval(question(t));
  await t.button(en('sign_out')).click();
  await t.button(en('sign_out_keep'), question(t)).click();
  await t.waitFor(t.heading(en('sign_in')));
  checkEqual(await value(t, 'account'), null, 'the account of the last session');
  checkEqual((await copies(t)).length, 1, 'copies that stay');
}

async function openSignedOut(s) {
  const { t } = s;
  await t.setOffline(true);
  for (const path of [`/sync?app=${s.app}`, `/${s.app}/inputs`, '/sync']) {
    await t.page.goto(path);
    await t.waitFor(t.page.getByRole('main').getByRole('heading').first());
    checkEqual(await t.page.locator('[role=gridcell], article').count(), 0, `${path}: pictures of the copy`);
  }
  await t.waitFor(t.page.getByText(en('sync_other_text')));
  await t.setOffline(false);
}

async function comeAsOther(s) {
  const { t } = s;
  await t.page.goto('/sign-up');
  await signUp(t, person);
  await t.page.goto('/sync');
  await t.waitFor(t.page.getByText(en('sync_other', { app: 'Harbour watch' })));
  await t.page.goto(`/${s.app}/inputs`);
  await t.waitFor(t.heading(en('error_missing')));
  checkEqual((await s.callApi('GET', `/inputs/${s.input}`)).input.data.concepts, undefined, 'labels at the origin');
  await startSignOut(t);
  await t.button(en('sign_out_remove'), question(t)).click(); // of the dropped picture, which may be anybody's
  await t.waitFor(t.heading(en('sign_in')));
  const found = await findData(t);
  checkEqual(found.stores, [`copy-${s.app}`], 'the stores that stay');
  check(found.values.includes(`searches.${s.app}`), 'the saved searches of the kept copy are missing');
  checkEqual(found.cached, [], 'cached data');
  forgetRefusals(t);
}

async function comeBack(s) {
  const { t } = s;
  await signIn(t, operator);
  await t.page.goto(`/sync?app=${s.app}`);
  await t.waitFor(copyRow(t).locator('.own', { hasText: 'tower' }));
  await t.button(en('sync_work_offline')).click();
  await t.waitFor(copyRow(t).getByText(en('mark_confirmed'), { exact: true }));
  await t.waitFor(t.page.getByText(en('sync_waiting_none')));
  const { concepts } = (await s.callApi('GET', `/inputs/${s.input}`)).input.data;
  checkEqual(
    concepts.map((c) => c.id),
    ['tower'],
    'labels at the origin',
  );
}

async function remove(s) {
  const { t } = s;
  await t.page.goto('/'); // the page Look has a store too
  const other = await t.context.newPage();
  await other.goto(`/${s.app}/inputs`);
  await t.waitFor(other.locator('[role=gridcell] img'));
  await storeMore(t, s.app);
  await startSignOut(t);
  await t.waitFor(question(t).getByText('Harbour watch'));
  await t.waitFor(t.button(en('sign_out_remove'), question(t)));
  checkEqual(await question(t).getByRole('alert').count(), 0, 'warnings');
  await t.checkAccessibility('a sign-out with nothing that waits');
  await t.button(en('sign_out_remove'), question(t)).click();
  await t.waitFor(t.heading(en('sign_in')));
  await other.waitForURL('**/sign-in');
  await other.close();
  checkNothing(await findData(t));
  const answers = await t.page.evaluate(async (input) => {
    const path = `/v2/inputs/${input}/thumbnail`;
    const headers = { Authorization: 'Key 0123456789abcdef0123456789abcdef' };
    return Promise.all(
      [{}, { headers }].map(async (options) => (await fetch(path, { cache: 'force-cache', ...options })).status),
    );
  }, s.input);
  checkEqual(answers, [401, 401], 'the thumbnail with force-cache');
  forgetRefusals(t);
}

/** Fails if a script finds more than the stored program and choices that belong to no account. */
function checkNothing(found, kept = []) {
  checkEqual([found.stores, found.databases], [kept.map((app) => `copy-${app}`), []], 'stores and databases');
  checkEqual(found.cached, [], 'cached data');
  checkEqual(found.tab, [], 'values of the tab');
  const ofAccount = found.values.filter((one) => personal.includes(one) || one.includes('.'));
  checkEqual(ofAccount, kept.length ? ['copies'] : [], 'values of an account');
}

async function claim(s) {
  const { t } = s;
  await signIn(t, operator);
  await join(t, s.app);
  await t.page.evaluate(() => {
    const all = JSON.parse(localStorage.getItem('copies'));
    localStorage.setItem('copies', JSON.stringify(all.map(({ account: _, ...rest }) => rest)));
  });
  await t.page.goto('/apps');
  await t.waitUntil((id) => JSON.parse(localStorage.getItem('copies'))[0].account === id, s.account);
  await startSignOut(t);
  await t.button(en('sign_out_keep'), question(t)).click();
  await t.waitFor(t.heading(en('sign_in')));
}

async function deleteAccount(s) {
  const { t } = s;
  await signIn(t, person);
  const app = await newApp(t);
  await join(t, app);
  await t.button(en('sync_work_offline')).click(); // otherwise the origin would withdraw the copy
  await storeMore(t, app);
  await t.page.evaluate(async (app) => {
    const { session } = await (await fetch('/console/session')).json();
    await fetch(`/console/apps/${app}`, {
      method: 'DELETE',
      headers: { 'Content-Type': 'application/json', 'X-Sightline-CSRF': session.csrf },
      body: JSON.stringify({ name: 'Harbour watch' }),
    });
  }, app);
  await t.page.goto('/account');
  for (const list of ['sessions', 'activity']) await t.waitFor(t.page.getByRole('table', { name: en(list) }));
  await t.page.evaluate((other) => {
    const all = JSON.parse(localStorage.getItem('copies'));
    const withoutAccount = all.map(({ account, ...rest }) => (rest.id === other ? rest : { account, ...rest }));
    localStorage.setItem('copies', JSON.stringify(withoutAccount)); // as an earlier program stored it
  }, s.app);
  await t.button(en('delete_account')).click();
  const dialog = t.dialog(en('delete_account'));
  await t.field(en('password'), dialog).fill(person.password);
  await t.button(en('delete_account'), dialog).click();
  await t.waitFor(t.page.getByText(en('account_deleted')));
  checkNothing(await findData(t), [s.app]);
  checkEqual(
    (await copies(t)).map((c) => c.id),
    [s.app],
    'copies of other accounts',
  );
  forgetRefusals(t);
}

/** Forgets refusals that the console reports. Their number depends on how often a page asked before it noticed the end of the session. */
function forgetRefusals(t) {
  const others = t.takeFaults().filter((fault) => !/ a status of (401|404|410) /.test(fault));
  checkEqual(others, [], 'faults other than refusals');
}

await journey(async (arrive) => {
  const t = await arrive();
  const s = { t };
  await t.step('A replica belongs to the account that created it', () => makeCopy(s));
  await t.step('After the session has expired, the replica still opens without a network', () => expire(s));
  await t.step('A sign-out lists the changes that wait, and offers to keep them', () => keep(s));
  await t.step('After a sign-out, the replica does not open without a network', () => openSignedOut(s));
  await t.step('Another account cannot open the replica and does not send its changes', () => comeAsOther(s));
  await t.step('The next session of the first account sends the changes', () => comeBack(s));
  await t.step('A sign-out removes all data of the account from the device, also from other tabs', () => remove(s));
  await t.step('The replica of an earlier version gets the account of the next session that owns its application', () =>
    claim(s),
  );
  await t.step('A deleted account leaves no data on the device, and the replica of another account stays', () =>
    deleteAccount(s),
  );
});
