// States of the pages that have no content to show: each one says what is missing, and offers a way on.
import { journey, same, words } from './browser.js';

const seenAs = (name) => ({ output: { data: { concepts: [{ name }] } } });
const q = (ands) => `?q=${encodeURIComponent(JSON.stringify(ands))}`;

/** Opens an address whose filters cannot be read, and clears them. */
async function unread(t, m, app) {
  for (const page of ['inputs', 'search']) {
    await t.page.goto(`/${app}/${page}?q=%5B%7B%22input`);
    await t.seen(t.heading(m('search_unread')));
    same(await t.page.locator('[role=gridcell], .hits').count(), 0, 'pictures for filters that cannot be read');
    await t.look(`${page} with filters that cannot be read`);
    await t.button(m('search_clear')).click();
    await t.gone(t.heading(m('search_unread')));
  }
}

/** Searches for what no picture shows, twice, so that no filter alone is to blame. */
async function finds(t, m, app) {
  await t.page.goto(`/${app}/search${q([seenAs('no such thing'), seenAs('nor this')])}`);
  await t.seen(t.heading(m('search_none')));
  await t.button(m('search_clear')).click();
  await t.seen(t.page.locator('.hits img'));
}

await journey(async (arrive) => {
  const m = await words('en');
  const t = await arrive();
  await t.page.goto('/');
  await t.until(() => localStorage.getItem('copies'));
  const app = await t.page.evaluate(() => JSON.parse(localStorage.getItem('copies'))[0].id);
  await t.step('filters that cannot be read find nothing', () => unread(t, m, app));
  await t.step('a search without results offers to clear its filters', () => finds(t, m, app));
});
