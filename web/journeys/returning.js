// Steps after the network is connected again: the replica sends pending operations, the page shows conflicts with changes made elsewhere,
// and all places become equal. A fast origin confirms everything before the page is drawn again, so "queued" and "sent" may never appear.
import { createHash } from 'node:crypto';
import { check, checkEqual } from './browser.js';
import { caller, pollUntil } from './demonstration.js';
import { syncStatus, testPicture } from './offline.js';
import { lighthouse, nameOf, sample } from './pictures.js';
import { collectStatusTexts } from './screens.js';

export async function goOnline(s) {
  const { t } = s;
  const textsHandle = await t.page.evaluateHandle(collectStatusTexts);
  await s.startOrigin();
  await pollUntil(
    () => s.callApi('GET', `/inputs/${s.conflictId}`),
    (answer) => answer.status.code !== 10000,
    'what was deleted at the edge, at the origin',
  );
  await t.setOffline(false);
  await t.waitFor(syncStatus(t).getByText(s.m('mark_conflict_text', { n: 1 }), { exact: true }));
  const texts = await textsHandle.jsonValue();
  check(!texts.some((text) => text.toLowerCase().includes('confirmed')), `it is said before it is so: ${texts}`);
  await dismissConflict(s);
  for (const place of [s.origin, s.edge]) await checkPlace(s, place);
  await pollUntil(
    async () => [await hashPlace(s, s.origin), await hashPlace(s, s.edge)],
    ([originHash, edgeHash]) => originHash === edgeHash,
    'origin and edge',
  );
  // The page may ask for the thumbnail of the deleted input before it has received the deletion. Browsers do not keep thumbnails.
  const isExpected = (fault) => fault.includes('404') && fault.includes(`/v2/inputs/${s.conflictId}/thumbnail`);
  checkEqual(
    t.takeFaults().filter((fault) => !isExpected(fault)),
    [],
    'faults',
  );
}

/**
 * Checks that the page shows both sides of the conflict, and dismisses it. Then everything is confirmed, and the replica equals the origin.
 */
async function dismissConflict(s) {
  const { t } = s;
  await t.page.setViewportSize({ width: 1440, height: 900 });
  await t.page.goto(`/sync?app=${s.app}`);
  const conflict = t.page.getByRole('region', { name: s.m('sync_conflicts') }).getByRole('article');
  await t.waitFor(conflict.getByText(s.m('verdict_gone')));
  checkEqual(await conflict.count(), 1, 'conflicts');
  await t.waitFor(conflict.getByText('tower'));
  await t.waitFor(conflict.getByText(s.m('sync_current')));
  const sides = await conflict
    .locator('.side')
    .evaluateAll((elements) => elements.map((element) => element.getBoundingClientRect().y));
  check(sides.length === 2 && sides[0] === sides[1], `the sides stand at ${sides}`);
  await t.checkAccessibility('a conflict');
  await t.button(s.m('sync_accept'), conflict).click();
  await t.waitFor(syncStatus(t).getByText(s.m('sync_summary_confirmed'), { exact: true }));
  await t.page.getByText(s.m('sync_details'), { exact: true }).click();
  await t.button(s.m('consistency_compare')).click();
  await t.waitFor(t.page.getByText(s.m('consistency_equal', { equal: '2', all: '2' })));
}

/**
 * Checks that a place has the changes made in the page: pictures, labels, deletions, and the model with its versions. Each version predicts
 * what it predicted in the page.
 */
async function checkPlace(s, place) {
  const callApi = caller(place, s.key);
  const findByName = (inputs, name) => inputs?.find((input) => nameOf(input) === name);
  const hasTower = (input) => input?.data.concepts?.some((c) => c.name === 'tower' && c.value === 1);
  await pollUntil(
    () => callApi('GET', '/inputs?per_page=100'),
    ({ inputs }) =>
      inputs?.length === s.pictures - 1 && // the edge deleted one
      !findByName(inputs, 'Footballer') &&
      findByName(inputs, lighthouse) &&
      hasTower(findByName(inputs, 'Castle gate')),
    `the pictures at ${place}`,
  );
  const id = s.model.split('/').at(-1);
  const trainedVersions = ({ model_versions: list }) => list?.filter((v) => v.status.code === 21100) ?? [];
  const versions = trainedVersions(
    await pollUntil(
      () => callApi('GET', `/models/${id}/versions`),
      (answer) => trainedVersions(answer).length === s.predictions.length,
      `the versions at ${place}`,
    ),
  );
  const base64 = (await sample(testPicture)).toString('base64');
  versions.sort((a, b) => a.created_at.localeCompare(b.created_at));
  for (const [i, version] of versions.entries()) {
    const body = { inputs: [{ data: { image: { base64 } } }] };
    const answer = await callApi('POST', `/models/${id}/versions/${version.id}/outputs`, body);
    checkEqual(answer.outputs?.[0]?.data.concepts[0].name, s.predictions[i], `version ${i + 1} at ${place}`);
  }
}

/** Returns the hash of a place's inputs, models and concepts. */
async function hashPlace(s, place) {
  const callApi = caller(place, s.key);
  const answers = await Promise.all(
    ['/inputs', '/models', '/concepts'].map((path) => callApi('GET', `${path}?per_page=1000`)),
  );
  return createHash('sha256').update(JSON.stringify(answers).replaceAll(place, '')).digest('hex');
}
