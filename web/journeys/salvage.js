// Damages the files of a replica and of the Look page. The pages report the damage, keep the part that can be read, send the changes that
// wait, and get the replica again. They drop nothing without a sentence.
import { check, checkEqual, journey, origin, words } from './browser.js';
import { caller, newKey, pollUntil } from './demonstration.js';
import { dropFiles, lighthouse } from './pictures.js';

const en = await words('en');

/**
 * In the page: returns the size of a store's file of records, which begins with the letters SLSTORE1. With `size`, truncates the file first.
 */
async function recordBytes([store, size]) {
  let folder = await navigator.storage.getDirectory();
  for (const name of ['sightline', store]) folder = await folder.getDirectoryHandle(name);
  for (const name of ['0', '1']) {
    const handle = await folder.getFileHandle(name);
    const file = await handle.getFile();
    if ((await file.slice(0, 8).text()) !== 'SLSTORE1') continue;
    if (size === undefined) return file.size;
    const writable = await handle.createWritable({ keepExistingData: true });
    await writable.truncate(size);
    await writable.close();
    return size;
  }
}

const question = (t) => t.dialog(en('sync_get_again'));
const getAgain = (t) => t.button(en('sync_get_again'), t.page.locator('main'));

/** Closes the tab, which closes the files of a store, connects the network, and truncates the store's records to a size. Then opens a page. */
async function damage(t, store, size, path) {
  await t.reopenTab();
  await t.context.setOffline(false);
  await t.page.goto('/healthz');
  await pollUntil(
    () => t.page.evaluate(recordBytes, [store, size]).catch(() => undefined), // the worker may still have the file open
    (truncated) => truncated === size,
    'the file is truncated',
  );
  await t.page.goto(path);
  await t.confirmOnline();
}

await journey(async (arrive) => {
  const t = await arrive();
  let [app, callApi, first, size, second] = [];
  const picture = () =>
    t.page
      .getByRole('region', { name: en('sync_pictures') })
      .getByRole('article')
      .first();
  const addLabel = async (concept) => {
    await picture().getByRole('combobox').focus();
    await t.type(concept);
    await t.press('Enter');
    await t.waitFor(picture().locator('.own', { hasText: concept }));
  };
  const labelsAtOrigin = async () => (await callApi('GET', `/inputs/${first}`)).input.data.concepts?.map((c) => c.id);
  const waitForReplica = async () => {
    await t.waitFor(t.page.getByText(en('phase_current')));
    await t.waitFor(t.page.locator('.sync-summary', { hasText: en('sync_summary_confirmed') }));
  };

  await t.step('Without a network, two labels wait in the replica', async () => {
    await t.page.goto('/sync');
    await waitForReplica();
    app = await t.page.evaluate(() => JSON.parse(localStorage.getItem('copies'))[0].id);
    callApi = caller(origin, await newKey(t, app));
    const name = await picture().getAttribute('aria-label');
    const { inputs } = await callApi('GET', '/inputs?per_page=100');
    first = inputs.find((input) => input.data.metadata?.name === name || input.id === name).id;
    await t.waitFor(t.page.getByText(en('look_stored')));
    await t.setOffline(true);
    await addLabel('tower');
    size = await t.page.evaluate(recordBytes, [`copy-${app}`]);
    await addLabel('castle');
    check((await t.page.evaluate(recordBytes, [`copy-${app}`])) > size, 'the second label is not in the file');
  });
  await t.step('Two tabs report that the replica is damaged, and the loss', async () => {
    await damage(t, `copy-${app}`, size + 10, '/sync');
    second = await t.context.newPage();
    await second.goto('/sync');
    for (const page of [t.page, second]) {
      await t.waitFor(page.getByRole('alert').getByText(en('store_damaged'), { exact: true }));
      await t.waitFor(page.getByText(en('store_damaged_do'), { exact: true }));
      await t.waitFor(t.button(en('store_keep'), page));
    }
    for (const language of ['de', 'ja', 'ar', 'en']) {
      const m = await words(language);
      await t.page.evaluate((language) => localStorage.setItem('language', language), language);
      await t.page.reload();
      await t.waitFor(t.page.getByText(m('store_damaged_do'), { exact: true }));
      await t.checkAccessibility(`a damaged replica in ${language}`);
      for (const width of [360, 2400, 1200]) {
        await t.page.setViewportSize({ width, height: 800 });
        await t.checkWidth(`a damaged replica in ${language}`);
      }
    }
    await getAgain(t).click();
    await t.waitFor(question(t).getByText(en('sync_get_again_unknown')));
    await t.button(en('delete_cancel'), question(t)).click();
    await t.button(en('sync_remove')).click();
    const removal = t.page.getByRole('alertdialog').or(t.page.getByRole('dialog'));
    await t.waitFor(removal.getByText(en('sync_get_again_unknown')));
    await t.button(en('delete_cancel'), removal).click();
  });
  await t.step('A person keeps the readable part, and its label waits', async () => {
    await t.setOffline(true);
    await t.button(en('store_keep')).click();
    await t.waitFor(t.page.getByText(en('sync_salvaged'), { exact: true }));
    await t.waitFor(
      t.page.getByText(/^Records read: [1-9][\d,]*\. Removed records: [1-9] kB\. Removed pictures: 0 kB\.$/),
    );
    await t.waitFor(t.page.getByText(en('sync_salvaged_waiting'), { exact: true }));
    await t.waitFor(picture().locator('.own', { hasText: 'tower' }));
    checkEqual(await picture().locator('.own', { hasText: 'castle' }).count(), 0, 'labels that were cut');
    await t.checkAccessibility('a salvaged replica');
    await getAgain(t).click();
    await t.waitFor(question(t).getByText(en('sync_remove_lost', { n: '1' })));
    await t.button(en('sync_get_again'), question(t)).click();
    await t.waitFor(question(t).getByText(en('error_offline'))); // nothing is removed without the origin
    await t.button(en('delete_cancel'), question(t)).click();
    await t.waitFor(picture().locator('.own', { hasText: 'tower' }));
    await t.button(en('store_keep'), second).click();
    await t.waitFor(second.getByText(en('sync_salvaged'), { exact: true }));
  });
  await t.step(
    'With a network again, the origin gets the label, and the page offers to get the replica again',
    async () => {
      await t.setOffline(false);
      await pollUntil(labelsAtOrigin, (ids) => ids?.includes('tower'), 'the label at the origin');
      await t.waitFor(t.page.getByText(en('sync_salvaged_sent'), { exact: true }));
      await t.page.reload();
      await t.waitFor(t.page.getByText(en('sync_salvaged_sent'), { exact: true })); // the offer outlives the page
    },
  );
  await t.step('The replica stays while another tab has it open, and is then fetched again', async () => {
    await getAgain(t).click();
    await t.waitFor(question(t).getByText(en('sync_remove_text')));
    await t.button(en('sync_get_again'), question(t)).click();
    await t.waitFor(question(t).getByText(en('error_tab')));
    await second.close();
    await t.button(en('sync_get_again'), question(t)).click();
    await t.waitForRemoval(question(t));
    await waitForReplica();
    checkEqual(await t.page.getByText(en('sync_salvaged'), { exact: true }).count(), 0, 'notes about the damage');
    await t.waitFor(picture().locator('.own', { hasText: 'tower' }));
    check(!(await labelsAtOrigin()).includes('castle'), 'the label that was cut is at the origin');
    await addLabel('castle');
    await pollUntil(labelsAtOrigin, (ids) => ids?.includes('castle'), 'a later label at the origin');
  });
  await t.step('If nothing can be read, the page only offers to get the replica again', async () => {
    await damage(t, `copy-${app}`, 70, '/sync');
    await t.button(en('store_keep')).click();
    await t.waitFor(t.page.getByText(en('store_unreadable'), { exact: true }));
    checkEqual(await t.button(en('store_keep')).count(), 0, 'offers to keep something');
    await t.checkAccessibility('a replica of which nothing can be read');
    await getAgain(t).click();
    await t.waitFor(question(t).getByText(en('sync_get_again_unknown')));
    await t.button(en('sync_get_again'), question(t)).click();
    await t.waitForRemoval(question(t));
    await waitForReplica();
    await t.waitFor(picture().locator('.own', { hasText: 'castle' }));
  });
  await t.step('The Look page keeps the readable part of its pictures and models, or deletes all', async () => {
    const isReady = async () => {
      await dropFiles(t.page.locator('.stage'), [lighthouse]);
      await t.waitFor(t.page.locator('.readout .words li').filter({ hasText: 'lighthouse' }));
    };
    await t.page.goto('/look');
    await isReady();
    size = await t.page.evaluate(recordBytes, ['main']);
    await damage(t, 'main', size - 10, '/look');
    await t.button(en('store_keep')).click();
    await t.waitFor(t.page.getByText(/^Records read: /));
    await isReady();
    await t.checkAccessibility('salvaged data of the Look page');
    await damage(t, 'main', 70, '/look');
    await t.button(en('store_keep')).click();
    await t.waitFor(t.page.getByText(en('store_unreadable'), { exact: true }));
    await t.button(en('device_pictures_delete'), t.page.getByRole('alert')).click();
    await t.button(en('device_delete_do'), t.dialog(en('device_delete_title'))).click();
    await isReady();
  });
});
