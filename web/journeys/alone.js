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
    await t.step('The browser gets a replica and shows its pictures', async () => {
      await t.page.goto('/');
      await setScreen(s, 'en', sizes.wide);
      await joinApp(s);
      await openInputs(s);
    });
    await t.step('Without a network, the page starts and accepts a picture', () => goOffline(s));
    await t.step('The page trains a model, shows its evaluation and predicts with it', () => trainModel(s));
    await t.step('Labels and a deletion wait in the replica, also after the tab was closed', () => editOffline(s));
    await t.step('With a network again, the page sends all changes and then shows them as confirmed', () =>
      goOnline(s),
    );
  }),
);
