// Without a network, the pages start, accept a picture, train a model, and store changes. Once there is a network, everything is sent.
import { journey } from './browser.js';
import { demonstration } from './demonstration.js';
import { edits, joins, leaves, lists, teaches } from './offline.js';
import { returns } from './returning.js';
import { as, sizes } from './screens.js';

await journey((arrive) =>
  demonstration(1, async ({ edges: [edge], ...places }) => {
    const t = await arrive();
    const s = { t, edge, ...places };
    await t.step('the pictures are on the device', async () => {
      await t.page.goto('/');
      await as(s, 'en', sizes.wide);
      await joins(s);
      await lists(s);
    });
    await t.step('without a network it starts, and takes a picture', () => leaves(s));
    await t.step('a model is taught, trained, judged and tried', () => teaches(s));
    await t.step('labels and a deletion wait, and outlast the tab', () => edits(s));
    await t.step('with a network everything is sent, and confirmed when it is', () => returns(s));
  }),
);
