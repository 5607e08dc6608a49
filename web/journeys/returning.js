// With a network again: pending operations are sent, conflicts with changes made elsewhere are shown, and all places are equal. A fast
// origin confirms everything before the page is drawn again, so "queued" and "sent" may never appear.
import { createHash } from 'node:crypto';
import { check, same } from './browser.js';
import { caller, until } from './demonstration.js';
import { truth, unseen } from './offline.js';
import { lighthouse, sample } from './pictures.js';
import { travelled } from './screens.js';

export async function returns(s) {
  const { t } = s;
  const way = await t.page.evaluateHandle(travelled);
  await s.start();
  await until(
    () => s.ask('GET', `/inputs/${s.contested}`),
    (answer) => answer.status.code !== 10000,
    'what was deleted at the edge, at the origin',
  );
  await t.offline(false);
  await t.seen(truth(t).getByText(s.m('mark_conflict_text', { n: 1 }), { exact: true }));
  const said = await way.jsonValue();
  check(!said.some((words) => words.toLowerCase().includes('confirmed')), `it is said before it is so: ${said}`);
  await reads(s);
  for (const place of [s.origin, s.edge]) await holds(s, place);
  await until(
    async () => [await digest(s, s.origin), await digest(s, s.edge)],
    ([here, there]) => here === there,
    'origin and edge',
  );
}

/**
 * Reads the conflict, whose two sides are shown next to each other, and agrees. Then everything is confirmed, and equal to the origin's.
 */
async function reads(s) {
  const { t } = s;
  await t.page.setViewportSize({ width: 1440, height: 900 });
  await t.page.goto(`/sync?app=${s.app}`);
  const conflict = t.page.getByRole('region', { name: s.m('sync_conflicts') }).getByRole('article');
  await t.seen(conflict.getByText(s.m('verdict_gone')));
  same(await conflict.count(), 1, 'conflicts');
  await t.seen(conflict.getByText('tower'));
  await t.seen(conflict.getByText(s.m('sync_in_force')));
  const sides = await conflict.locator('.side').evaluateAll((all) => all.map((one) => one.getBoundingClientRect().y));
  check(sides.length === 2 && sides[0] === sides[1], `the sides stand at ${sides}`);
  await t.look('a conflict');
  await t.button(s.m('sync_agree'), conflict).click();
  await t.seen(truth(t).getByText(s.m('truth_confirmed'), { exact: true }));
  await t.button(s.m('receipt_compare')).click();
  await t.seen(t.page.getByText(s.m('receipt_equal', { equal: '2', all: '2' })));
}

/**
 * Checks that a place has the changes made in the page: pictures, labels, deletions, and the model with its versions. Each version predicts
 * what it predicted in the page.
 */
async function holds(s, place) {
  const ask = caller(place, s.key);
  const called = (inputs, name) => inputs?.find((one) => one.data.metadata?.name === name);
  const tower = (input) => input?.data.concepts?.some((c) => c.name === 'tower' && c.value === 1);
  await until(
    () => ask('GET', '/inputs?per_page=100'),
    ({ inputs }) =>
      inputs?.length === s.pictures - 1 && // the edge deleted one
      !called(inputs, 'Footballer') &&
      called(inputs, lighthouse) &&
      tower(called(inputs, 'Castle gate')),
    `the pictures at ${place}`,
  );
  const id = s.model.split('/').at(-1);
  const trained = ({ model_versions: all }) => all?.filter((v) => v.status.code === 21100) ?? [];
  const versions = trained(
    await until(
      () => ask('GET', `/models/${id}/versions`),
      (answer) => trained(answer).length === s.predicted.length,
      `the versions at ${place}`,
    ),
  );
  const base64 = (await sample(unseen)).toString('base64');
  versions.sort((a, b) => a.created_at.localeCompare(b.created_at));
  for (const [i, version] of versions.entries()) {
    const body = { inputs: [{ data: { image: { base64 } } }] };
    const answer = await ask('POST', `/models/${id}/versions/${version.id}/outputs`, body);
    same(answer.outputs?.[0]?.data.concepts[0].name, s.predicted[i], `version ${i + 1} at ${place}`);
  }
}

/** The hash of a place's inputs, models and concepts. */
async function digest(s, place) {
  const ask = caller(place, s.key);
  const all = await Promise.all(['/inputs', '/models', '/concepts'].map((path) => ask('GET', `${path}?per_page=1000`)));
  return createHash('sha256').update(JSON.stringify(all).replaceAll(place, '')).digest('hex');
}
