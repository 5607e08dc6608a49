// Tests a replica of an application in the browser: it joins, stores changes without a network, sends them, resolves a conflict, and is
// removed.
import { readFile } from 'node:fs/promises';
import { check, checkEqual, origin, waitForLine, words } from './browser.js';

const en = await words('en');
// The demonstration already has the sample. Additional bytes at its end make it another file.
const sample = await readFile(new URL('../samples/42-lighthouse-in-the-sea.jpg', import.meta.url));
const name = 'lighthouse-again.jpg';
const lighthouse = { name, mimeType: 'image/jpeg', buffer: Buffer.concat([sample, Buffer.from('again')]) };

/** Tests a replica. The traveller is signed in and has one application. */
export async function testCopy(t) {
  const picture = t.page.getByRole('article', { name, exact: true });
  const mark = (word) => picture.getByText(word, { exact: true });
  const pendingChanges = t.page.getByRole('region', { name: en('sync_waiting') }).locator('ol > li');
  const conflicts = t.page.getByRole('region', { name: en('sync_conflicts') });
  const openDetails = () => t.page.getByText(en('sync_details'), { exact: true }).click();
  const definition = (term, text) => t.page.locator(`dt:text-is("${term}") + dd`).filter({ hasText: text });
  const key = await waitForLine(/^\s+key\s+([0-9a-f]{32})$/);
  const callApi = async (method, path, body) => {
    const headers = { Authorization: `Key ${key}`, 'Content-Type': 'application/json' };
    const answer = await fetch(`${origin}/v2${path}`, { method, headers, body: body && JSON.stringify(body) });
    return answer.json();
  };
  const addLabel = async (concept) => {
    await t.field(en('sync_label_for', { name })).focus();
    await t.type(concept);
    await t.press('Enter');
    await t.waitFor(picture.locator('.own', { hasText: concept }));
  };

  await t.step('A demonstration creates a replica in the browser by itself', async () => {
    await t.page.goto('/sync');
    await t.waitFor(t.heading(en('sync_devices_title')));
    await t.waitFor(t.page.locator('.sync-summary', { hasText: en('sync_summary_confirmed') }));
  });
  const devices = t.page.getByRole('region', { name: en('sync_devices'), exact: true }).getByRole('listitem');
  const changes = t.page.getByRole('region', { name: en('sync_changes'), exact: true }).getByRole('listitem');
  const thisBrowser = devices.filter({ hasText: en('consistency_browser') });
  await t.step('The page reports that all is at the origin, and lists the devices and the newest changes', async () => {
    await t.waitFor(t.heading(en('sync_work_safe')));
    await t.waitFor(devices.filter({ hasText: en('input_site_origin') }));
    await t.waitFor(thisBrowser.filter({ hasText: 'Chrome' }).filter({ hasText: en('phase_current') }));
    const id = await t.page.evaluate(() => localStorage.getItem('browser'));
    const own = (await callApi('GET', '/sync/devices')).devices.find((device) => device.id === id);
    checkEqual([own?.kind, own?.name.split(' ')[0]], ['page', 'Chrome'], 'this browser in the list of the origin');
    await t.waitFor(changes);
    await t.checkAccessibility('the devices and the newest changes');
  });
  await t.step('Without a network, a picture and a label wait in the replica', async () => {
    await t.waitFor(t.heading(en('sync_pictures')));
    await t.waitFor(t.page.getByText(en('look_stored')));
    await t.setOffline(true);
    await t.page.getByLabel(en('pictures_add'), { exact: true }).setInputFiles(lighthouse);
    await t.waitFor(mark(en('mark_queued')));
    await addLabel('tower');
    checkEqual(await pendingChanges.count(), 2, 'changes that wait');
    await t.waitFor(t.heading(en('sync_work_waits', { n: '2' })));
    checkEqual(await devices.count(), 2, 'devices that are known without a network');
    await t.waitFor(changes.filter({ hasText: 'tower' }).filter({ hasText: en('mark_queued') }));
    await openDetails();
    await t.waitFor(definition(en('sync_only_here'), '1 picture'));
    await t.checkAccessibility('a copy without a network');
  });
  await t.step('After a start without a network, the page shows the changes that wait', async () => {
    await t.page.reload();
    await t.waitFor(mark(en('mark_queued')));
    await t.waitFor(picture.locator('.own', { hasText: 'tower' }));
    await t.waitFor(t.page.locator('.sync-summary', { hasText: en('sync_summary_queued', { n: '2' }) }));
    checkEqual(await mark(en('mark_confirmed')).count(), 0, 'ticks before the log has said so');
  });
  let id;
  await t.step('With a network again, the page shows the changes as confirmed once the origin has them', async () => {
    const marksHandle = await t.page.evaluateHandle(collectMarks, name);
    await t.setOffline(false);
    await t.waitFor(mark(en('mark_confirmed')));
    const found = (await callApi('GET', '/inputs?per_page=100')).inputs.filter(
      (input) => input.data.metadata?.name === name,
    );
    checkEqual(found.length, 1, 'pictures that the origin has');
    checkEqual(
      found[0].data.concepts.map((c) => [c.id, c.value]),
      [['tower', 1]],
      'what the origin says of it',
    );
    id = found[0].id;
    const marks = await marksHandle.jsonValue();
    checkEqual(
      [marks[0], marks.indexOf(en('mark_confirmed'))],
      [en('mark_queued'), marks.length - 1],
      `the way ${marks}`,
    );
    await t.waitFor(t.page.getByText(en('sync_waiting_none')));
    await openDetails();
    await t.waitFor(definition(en('sync_only_here'), en('sync_nothing')));
    await t.button(en('consistency_compare')).click();
    await t.waitFor(t.page.getByText(en('consistency_equal', { equal: '2', all: '2' })));
    await t.page.setViewportSize({ width: 360, height: 740 });
    await t.checkWidth('a copy');
    await t.page.setViewportSize({ width: 1200, height: 800 });
  });
  await t.step(
    'The page lists two labels whose makers did not know of each other, until the person keeps one',
    async () => {
      await t.button(en('sync_work_offline')).click();
      await addLabel('ruin');
      const denial = { action: 'merge', inputs: [{ id, data: { concepts: [{ id: 'ruin', value: 0 }] } }] };
      checkEqual((await callApi('PATCH', '/inputs', denial)).status.code, 10000, 'the label at the origin');
      await t.button(en('sync_work_offline')).click();
      const contradiction = conflicts.getByRole('article');
      const side = (current) =>
        contradiction.locator('li').filter({
          [current ? 'has' : 'hasNot']: t.page.getByText(en('sync_current'), { exact: true }),
        });
      await t.waitFor(side(true).locator('.not', { hasText: 'ruin' }));
      await t.waitFor(side(false).locator('.own', { hasText: 'ruin' }));
      await t.waitFor(mark(en('mark_conflict')));
      await t.checkAccessibility('a contradiction');
      await t.page.setViewportSize({ width: 360, height: 740 });
      await t.checkWidth('a contradiction');
      await t.page.setViewportSize({ width: 1200, height: 800 });
      const listed = async () => (await callApi('GET', '/sync/conflicts')).conflicts.map((c) => c.values.length);
      checkEqual(await listed(), [2], 'values that the origin lists');
      await t.button(en('sync_keep'), side(false)).click();
      await t.waitFor(conflicts.getByText(en('sync_conflicts_none')));
      await t.waitFor(picture.locator('.own', { hasText: 'ruin' }));
      await t.waitFor(mark(en('mark_confirmed')));
      checkEqual(await listed(), [], 'contradictions that the origin still lists');
    },
  );
  await t.step('The page lists a change that lost to a deletion, until the person accepts that', async () => {
    await t.button(en('sync_work_offline')).click();
    await addLabel('castle');
    checkEqual((await callApi('DELETE', `/inputs/${id}`)).status.code, 10000, 'the deletion at the origin');
    await t.button(en('sync_work_offline')).click();
    const conflict = conflicts.getByRole('article');
    await t.waitFor(conflict.getByText(en('verdict_gone')));
    await t.waitFor(conflict.getByText('castle'));
    await t.waitForRemoval(t.page.getByRole('region', { name: en('sync_pictures') }).getByRole('article', { name }));
    await t.checkAccessibility('a conflict');
    await t.button(en('sync_accept'), conflict).click();
    await t.waitFor(conflicts.getByText(en('sync_conflicts_none')));
    await t.waitFor(conflicts.getByText(en('sync_resolved')));
  });
  await t.step('A person removes the replica and creates it again', async () => {
    await t.button(en('sync_remove')).click();
    const question = t.dialog(en('sync_remove_title', { app: await selectedApp(t) }));
    checkEqual(await t.focusLabel(), en('delete_cancel'), 'the answer that changes nothing');
    await t.button(en('sync_remove'), question).click();
    await t.waitFor(t.page.getByText(en('sync_removed')));
    await t.waitFor(t.button(en('sync_make_offline')));
    check(!(await t.page.evaluate(() => localStorage.getItem('copies'))), 'the copy is still remembered');
    await t.checkAccessibility('an application without a copy');
    await t.page.reload();
    await t.button(en('sync_make_offline')).click();
    await t.waitFor(t.page.locator('li[aria-current]', { hasText: en('phase_current') }));
  });
  await t.step('The replica of an application that becomes local only sends its changes and is removed', () =>
    toggleLocalOnly(t, { callApi, mark }),
  );
}

/** Makes the application local only while a picture is pending in the replica, and then shares it again. */
async function toggleLocalOnly(t, { callApi, mark }) {
  const setLocalOnly = async (enabled) => {
    await t.page.goto('/apps');
    const setting = t.page.getByRole('checkbox', { name: en('local_only') });
    await setting.setChecked(enabled);
    const navLabel = t.page.getByRole('navigation', { name: en('applications') }).getByText(en('local_only'));
    await (enabled ? t.waitFor(navLabel) : t.waitForRemoval(navLabel));
    checkEqual(await setting.isChecked(), enabled, 'the setting');
  };
  const countInputs = async () => (await callApi('GET', '/inputs?per_page=100')).inputs.length;
  const initialCount = await countInputs();
  await t.button(en('sync_work_offline')).click();
  await t.page.getByLabel(en('pictures_add'), { exact: true }).setInputFiles(lighthouse);
  await t.waitFor(mark(en('mark_queued')));
  await setLocalOnly(true);
  await t.checkAccessibility('an application that is local only');
  await t.page.goto('/sync');
  await t.button(en('sync_work_offline')).click();
  await t.waitFor(t.page.getByText(en('sync_purged_local')));
  // Without its replica, the page asks the origin for the picture, which may still be on its way there.
  const isExpected = (fault) => fault.includes('the application is local only') || /404.*\/hosted\//.test(fault);
  const faults = t.takeFaults().filter((fault) => !isExpected(fault));
  checkEqual(faults, [], 'faults, beside the reason that the runtime gives');
  checkEqual(await countInputs(), initialCount + 1, 'pictures that the origin has');
  await t.waitFor(t.page.getByText(en('sync_local_only', { app: await selectedApp(t) })));
  check(await t.button(en('sync_make_offline')).isDisabled(), 'a copy can be made of what is local only');
  check(!(await t.page.evaluate(() => localStorage.getItem('copies'))), 'the copy is still remembered');
  await t.checkAccessibility('no copy of what is local only');
  await setLocalOnly(false);
  await t.page.goto('/sync'); // on this page a demonstration creates a replica by itself
  await t.waitFor(t.page.locator('li[aria-current]', { hasText: en('phase_current') }));
  await t.waitFor(mark(en('mark_confirmed')));
}

/**
 * Collects the sync marks that a picture gets after this call, in their order. Meanwhile the page can replace the picture's element, so
 * each mark is read from the current element.
 */
function collectMarks(name) {
  const marks = [];
  const addMark = () => {
    const article = [...document.querySelectorAll('article')].find((element) => element.textContent.includes(name));
    const text = article?.querySelector('.mark')?.textContent.trim();
    if (text && text !== marks.at(-1)) marks.push(text);
  };
  addMark();
  new MutationObserver(addMark).observe(document.body, { subtree: true, childList: true, characterData: true });
  return marks;
}

/** The name of the selected application. */
function selectedApp(t) {
  return t.field(en('sync_application')).evaluate((select) => select.selectedOptions[0].textContent);
}
