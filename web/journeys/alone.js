// Without a network, the pages start, accept a picture, train a model, and store changes. Once there is a network, everything is sent.
import { journey } from './browser.js';
import { demonstration } from './demonstration.js';
import { editOffline, goOffline, joinApp, openInputs, trainModel } from './offline.js';
import { goOnline } from './returning.js';
import { setScreen, sizes } from './screens.js';

await journey((arrive) =>
  demonstration(1, async ({ edges: [edge], ...places }) => {
    const t = await arrive();
    const s = { t, edge, ...places };
    await t.step('the pictures are on the device', async () => {
      await t.page.goto('/');
      await setScreen(s, 'en', sizes.wide);
      await joinApp(s);
      await openInputs(s);
    });
    await t.step('without a network it starts, and takes a picture', () => goOffline(s));
    await t.step('a model is taught, trained, judged and tried', () => trainModel(s));
    await t.step('labels and a deletion wait, and outlast the tab', () => editOffline(s));
    await t.step('with a network everything is sent, and confirmed when it is', () => goOnline(s));
  }),
);
