// Tests that the edges keep working while the origin is stopped. A label that a person sets at one edge reaches all places.
import { checkEqual, journey, words } from './browser.js';
import { caller, demonstration, newKey, pollUntil } from './demonstration.js';

const ar = await words('ar');
const picture = 'Castle gate';

await journey((arrive) =>
  demonstration(2, async (places) => {
    const t = await arrive({ language: 'ar-EG' });
    const s = { t, ...places };
    await t.step('Two edges get the pictures of the origin', () => waitForEdges(s));
    await t.step('An edge stores a label while the origin is stopped', () => labelAtEdge(s));
    await t.step('The restarted origin sends the label to the other edge and to the page', () => waitForLabel(s));
    await t.step('The page starts while the origin does not answer', () => openWhileFrozen(s));
  }),
);

/** Returns the id and the labels of the picture at a place. */
async function readPicture(callApi) {
  const { inputs } = await callApi('GET', '/inputs?per_page=100');
  const match = inputs?.find((input) => input.data.metadata?.name === picture);
  return match && { id: match.id, names: (match.data.concepts ?? []).map((c) => c.name) };
}

async function waitForEdges(s) {
  const { t } = s;
  await t.page.setViewportSize({ width: 1440, height: 900 });
  await t.page.goto('/');
  await t.waitUntil(() => localStorage.getItem('copies'));
  s.app = await t.page.evaluate(() => JSON.parse(localStorage.getItem('copies'))[0].id);
  const key = await newKey(t, s.app);
  s.callers = s.edges.map((edge) => caller(edge, key));
  for (const callApi of s.callers) await pollUntil(() => readPicture(callApi), Boolean, 'the pictures of an edge');
  await t.page.goto(`/${s.app}/inputs`);
  await t.waitFor(t.page.getByRole('gridcell', { name: new RegExp(`^${picture}`) }));
  await t.waitFor(t.page.getByText(ar('sync_summary_connected')));
}

async function labelAtEdge(s) {
  const { t } = s;
  t.isOffline = true; // the origin does not answer the page
  await s.stopOrigin();
  const [callFirst, callSecond] = s.callers;
  const { id } = await readPicture(callFirst);
  const body = { action: 'merge', inputs: [{ id, data: { concepts: [{ id: 'tower', value: 1 }] } }] };
  checkEqual((await callFirst('PATCH', '/inputs', body)).status.code, 10000, 'a label at an edge');
  checkEqual((await readPicture(callFirst)).names.includes('tower'), true, 'the label, where it was said');
  checkEqual((await readPicture(callSecond)).names.includes('tower'), false, 'the label, where nobody has told it');
  await t.waitFor(t.page.getByRole('gridcell', { name: new RegExp(`^${picture}`) }));
}

async function waitForLabel(s) {
  const { t } = s;
  await s.startOrigin();
  await pollUntil(
    () => readPicture(s.callers[1]),
    ({ names }) => names.includes('tower'),
    'the label at the other edge',
  );
  await t.waitFor(t.page.getByRole('gridcell', { name: new RegExp(`^${picture}.*tower`) }));
  await t.waitFor(t.page.getByText(ar('sync_summary_connected')));
  await t.confirmOnline();
}

async function openWhileFrozen(s) {
  const { t } = s;
  await t.waitUntil(() => navigator.serviceWorker.controller);
  t.isOffline = true;
  await s.freezeOrigin();
  try {
    await t.page.goto(`/${s.app}/inputs`, { waitUntil: 'commit' });
    await t.waitFor(t.page.getByRole('gridcell', { name: new RegExp(`^${picture}.*tower`) }));
  } finally {
    await s.thawOrigin();
  }
  await t.waitFor(t.page.getByText(ar('sync_summary_connected')));
  await t.confirmOnline();
}
