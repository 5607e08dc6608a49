// The second story: while the origin is stopped, its edges keep working. A label that is set at one edge reaches all places.
import { journey, same, words } from './browser.js';
import { caller, demonstration, newKey, until } from './demonstration.js';

const ar = await words('ar');
const picture = 'Castle gate';

await journey((arrive) =>
  demonstration(2, async (places) => {
    const t = await arrive({ language: 'ar-EG' });
    const s = { t, ...places };
    await t.step('two edges have what the origin has', () => begins(s));
    await t.step('without the origin an edge takes a label', () => labels(s));
    await t.step('with it the label comes to the other edge and to the page', () => comes(s));
    await t.step('a page begins though the origin has fallen silent', () => goesOn(s));
  }),
);

/** The id and the labels that a place has for the picture. */
async function said(ask) {
  const { inputs } = await ask('GET', '/inputs?per_page=100');
  const one = inputs?.find((input) => input.data.metadata?.name === picture);
  return one && { id: one.id, names: (one.data.concepts ?? []).map((c) => c.name) };
}

async function begins(s) {
  const { t } = s;
  await t.page.setViewportSize({ width: 1440, height: 900 });
  await t.page.goto('/');
  await t.until(() => localStorage.getItem('copies'));
  s.app = await t.page.evaluate(() => JSON.parse(localStorage.getItem('copies'))[0].id);
  const key = await newKey(t, s.app);
  s.asks = s.edges.map((edge) => caller(edge, key));
  for (const ask of s.asks) await until(() => said(ask), Boolean, 'the pictures of an edge');
  await t.page.goto(`/${s.app}/inputs`);
  await t.seen(t.page.getByRole('gridcell', { name: new RegExp(`^${picture}`) }));
  await t.seen(t.page.getByText(ar('truth_connected')));
}

async function labels(s) {
  const { t } = s;
  t.away = true; // the origin does not answer the page
  await s.stop();
  const [first, second] = s.asks;
  const { id } = await said(first);
  const body = { action: 'merge', inputs: [{ id, data: { concepts: [{ id: 'tower', value: 1 }] } }] };
  same((await first('PATCH', '/inputs', body)).status.code, 10000, 'a label at an edge');
  same((await said(first)).names.includes('tower'), true, 'the label, where it was said');
  same((await said(second)).names.includes('tower'), false, 'the label, where nobody has told it');
  await t.seen(t.page.getByRole('gridcell', { name: new RegExp(`^${picture}`) }));
}

async function comes(s) {
  const { t } = s;
  await s.start();
  await until(
    () => said(s.asks[1]),
    ({ names }) => names.includes('tower'),
    'the label at the other edge',
  );
  await t.seen(t.page.getByRole('gridcell', { name: new RegExp(`^${picture}.*tower`) }));
  await t.seen(t.page.getByText(ar('truth_connected')));
  await t.returned();
}

async function goesOn(s) {
  const { t } = s;
  await t.until(() => navigator.serviceWorker.controller);
  t.away = true;
  await s.freeze();
  try {
    await t.page.goto(`/${s.app}/inputs`, { waitUntil: 'commit' });
    await t.seen(t.page.getByRole('gridcell', { name: new RegExp(`^${picture}.*tower`) }));
  } finally {
    await s.thaw();
  }
  await t.seen(t.page.getByText(ar('truth_connected')));
  await t.returned();
}
