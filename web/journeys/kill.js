// A label that the page has shown as stored is never lost, even if the tab is killed. The script labels pictures by keys in Label next, and
// ends the page's process at some key press, before or after the answer. Later, every label that the page had shown must be stored.
//
//     node kill.js               12 pictures with a network and 12 without, each with 2 kills
//     node kill.js 200 20 [7]    200 pictures and 20 kills each, and the seed 7
import { check, journey, origin, words } from './browser.js';
import { caller, newKey, pollUntil } from './demonstration.js';
import { mulberry } from './mulberry.js';
import { fillInputs } from './pictures.js';

const m = await words('en');
const [pictures = 12, kills = 2, seed = 8] = process.argv.slice(2).map(Number);
const model = 'bird-or-insect';
const chance = mulberry(seed);

await journey(async (arrive) => {
  const t = await arrive();
  const shownLabels = []; // labels that the page showed: { id, key }; unsure: the tab was killed after the press, so the label may be lost
  await t.context.exposeBinding('reportLabel', (_, label) => shownLabels.push(label));
  let [app, callApi, concepts] = [];
  await t.step('The application has pictures to label, and the browser has a replica', async () => {
    await t.page.goto('/');
    await t.waitUntil(() => localStorage.getItem('copies'));
    app = await t.page.evaluate(() => JSON.parse(localStorage.getItem('copies'))[0].id);
    callApi = caller(origin, await newKey(t, app));
    const { total } = await callApi('GET', `/models/${model}/next?page=1&per_page=1`);
    await fillInputs(callApi, total, 2 * pictures);
    const info = await callApi('GET', `/models/${model}/output_info`);
    concepts = info.model.output_info.data.concepts.map((c) => c.id);
    await waitForCopy(t);
  });
  for (const isOffline of [false, true]) {
    await t.step(
      `A person labels ${pictures} pictures and the tab is killed ${kills} times, ${isOffline ? 'without' : 'with'} a network`,
      async () => {
        await t.setOffline(isOffline);
        const initialCount = shownLabels.length;
        for (let n = 0; n < kills; n++) {
          const count = Math.floor(((n + 1) * pictures) / kills) - Math.floor((n * pictures) / kills);
          await labelPictures(t, app, count, shownLabels);
        }
        const seen = shownLabels.slice(initialCount).filter(({ unsure }) => !unsure).length;
        check(seen >= pictures - kills, `${seen} of ${pictures} were drawn`);
      },
    );
  }
  await t.step('The origin has every label that the page has shown as stored', async () => {
    await t.page.goto(`/${app}/next?model=${model}`);
    await t.setOffline(false);
    const statesById = new Map(); // by picture: its possible final labels, by concept
    for (const { id, key, unsure } of shownLabels) {
      const labels = Object.fromEntries(key === '0' ? concepts.map((c) => [c, 0]) : [[concepts[key - 1], 1]]);
      const previous = statesById.get(id) ?? [{}];
      statesById.set(id, [...(unsure ? previous : []), ...previous.map((state) => ({ ...state, ...labels }))]);
    }
    for (const [id, states] of statesById) {
      const hasLabels = (labels, input) =>
        Object.entries(labels).every(([c, value]) =>
          input?.data.concepts?.some((concept) => concept.id === c && concept.value === value),
        );
      const isPossible = ({ input }) => states.some((labels) => hasLabels(labels, input));
      await pollUntil(
        () => callApi('GET', `/inputs/${id}`),
        isPossible,
        `${id}, ${JSON.stringify(states)}, from ${seed}`,
      );
    }
  });
});

/** Labels `count` pictures. The tab's process is ended at the last key press or soon after it. */
async function labelPictures(t, app, count, shownLabels) {
  await t.page.goto(`/${app}/next?model=${model}`);
  await t.waitFor(t.page.locator('.queue progress'));
  await t.waitUntil(() => document.querySelector('.queue a.end')?.href);
  await t.page.evaluate(() => {
    let key = '';
    addEventListener('keydown', (event) => (key = event.key), true);
    const readQueue = () => ({
      id: document.querySelector('.queue a.end')?.pathname.split('/').at(-1),
      done: document.querySelector('.queue progress')?.value ?? 0,
    });
    let previous = readQueue();
    new MutationObserver(() => {
      const current = readQueue();
      if (current.done > previous.done) globalThis.reportLabel({ id: previous.id, key }); // the observer runs before the browser paints
      previous = current;
    }).observe(document.body, { subtree: true, childList: true, attributes: true });
  });
  const tab = await t.context.newCDPSession(t.page);
  for (let n = 1; n <= count; n++) {
    const key = String(Math.floor(chance() * 3));
    const initialCount = shownLabels.length;
    if (n < count) {
      await t.press(key);
      await pollUntil(
        () => t.page.evaluate(() => 0),
        () => shownLabels.length > initialCount,
        `the picture ${n} of ${count}`,
      );
    } else {
      const id = await t.page.evaluate(() => document.querySelector('.queue a.end').pathname.split('/').at(-1));
      shownLabels.push({ id, key, unsure: true });
      const keyPress = t.press(key).catch(() => {}); // the tab may close before it answers
      for (let turns = Math.floor(chance() * 12); turns > 0; turns--) await t.page.evaluate(() => 0);
      const crash = t.page.waitForEvent('crash');
      tab.send('Page.crash').catch(() => {});
      await Promise.all([crash, keyPress]);
    }
  }
  await t.reopenTab();
}

/**
 * Waits until the replica has received all entries of the origin, and until the page can start without a network. A tab that is killed
 * before would not finish storing the page's files.
 */
async function waitForCopy(t) {
  await t.page.goto('/sync');
  await t.waitFor(t.page.locator('li[aria-current]', { hasText: m('phase_current') }));
  await t.waitFor(t.page.getByText(m('look_stored')));
}
