// Pages of Studio in Chromium. They answer the same requests as those of page.ts. Their marks are read from the document.
import { listAll } from './lists.js';

const kinds = ['local', 'queued', 'sent', 'confirmed', 'conflict'];
const untrained = 21102;
const [trained, underway] = [21100, [21101, 21103]];

/** In the page: returns the marks of the elements that match a selector, with their names. inner: the part of each that has the mark. */
function collect([selector, name, inner, kinds]) {
  const kindOf = (element) => {
    const classes = element?.querySelector('.mark svg')?.classList;
    return kinds.find((kind) => classes?.contains(kind)) ?? '';
  };
  return [...document.querySelectorAll(selector)].map((element, i) => {
    const text =
      name === 'label' ? element.getAttribute('aria-label') : name && element.querySelector(name)?.textContent;
    return [text ?? i, kindOf(inner ? element.querySelector(inner) : element)];
  });
}

/** In the page: shows another of its addresses. */
function show(path) {
  history.pushState({}, '', path);
  dispatchEvent(new PopStateEvent('popstate'));
}

/** In the page: opens its replica a second time, as another tab does. */
async function openAgain(app) {
  const { Sightline } = await import('/runtime/index.js');
  const credential = async () => 'Bearer none';
  globalThis.other = await Sightline.open({ base: '/runtime/', workers: 1, copy: { origin: '', app, credential } });
}

/** In the page: sends a call to the replica. */
async function callReplica([method, path, body]) {
  const answer = await other.fetch(path, { method, ...(body && { body: JSON.stringify(body) }) });
  return { operations: answer.headers.get('X-Sightline-Operations'), ...(await answer.json()) };
}

/**
 * Opens a page in a new context of the browser. local, session: values of its storages. call: sends a call to its host; without it the page
 * has a replica, which answers.
 */
export async function openDrawnPage(browser, { url, app, cookies, local, session, call }) {
  const context = await browser.newContext({ baseURL: url, locale: 'en-GB', reducedMotion: 'reduce' });
  context.setDefaultTimeout(60_000);
  const pairs = cookies?.split('; ').map((one) => one.match(/([^=]*)=(.*)/)) ?? [];
  await context.addCookies(pairs.map(([, name, value]) => ({ name, value, url })));
  await context.addInitScript(
    (values) => {
      for (const [name, all] of Object.entries(values))
        for (const [key, value] of Object.entries(all)) if (!globalThis[name][key]) globalThis[name][key] = value;
    },
    { localStorage: local, sessionStorage: session },
  );
  const page = await context.newPage();
  const begin = async () => {
    await page.goto(`/sync?app=${app}`);
    if (call) return page.waitForSelector('aside .foot a .mark');
    await page.waitForSelector('section[aria-labelledby="learn"]');
    await page.evaluate(openAgain, app);
    if (local.stored) return undefined;
    await page.waitForFunction(() => navigator.serviceWorker.controller); // so that it is loaded again without a network
    local.stored = 'yes';
    return undefined;
  };
  const ask = call ?? ((...args) => page.evaluate(callReplica, args));
  /** Shows a path, and returns the marks of its things once all are drawn, or those that are drawn within 5 seconds. */
  const look = async (path, count, selector, name, inner) => {
    await page.evaluate(show, path);
    for (let left = 100; ; left--) {
      const found = await page.evaluate(collect, [selector, name, inner, kinds]);
      if (count(found) || !left) return found;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };

  /** Reads the data of the host, and then the marks of the views that show it. */
  async function read(prefix) {
    const isOwn = ({ id }) => id.startsWith(prefix);
    const inputs = (await ask('GET', '/v2/inputs?per_page=1000')).inputs.filter(isOwn).map(({ id }) => id);
    const models = (await ask('GET', '/v2/models?per_page=200')).models.filter(isOwn).map(({ id }) => id);
    const concepts = (await ask('GET', '/v2/concepts/usage?per_page=1000')).concepts.filter(isOwn);
    const found = [];
    /** Adds the marks of a view. ids: the things that it shows, by their names there. */
    const add = (view, what, ids, drawn) => {
      const byName = new Map(drawn.map(([name, kind]) => [String(name).split(',')[0], kind]));
      for (const [name, id] of ids) found.push([view, `${what} ${id}`, byName.get(String(name)) ?? 'missing']);
    };
    const hasAll = (ids) => (drawn) => {
      const names = drawn.map(([name]) => String(name).split(',')[0]);
      return ids.every(([name]) => names.includes(String(name)));
    };
    const files = inputs.map((id) => [`${id}.jpg`, id]);
    const named = concepts.map(({ id, name }) => [name, id]);
    const own = models.map((id) => [id, id]);
    const views = [
      ['the grid', 'inputs', files, `/${app}/inputs`, '[role="gridcell"]', 'label'],
      ['the models', 'models', own, `/${app}/models`, 'main tbody tr', 'th bdi'],
      ['the concepts', 'concepts', named, `/${app}/concepts`, 'main tbody tr', 'th .name'],
    ];
    if (!call) {
      const sync = `/sync?app=${app}`;
      views.push(['the page Sync', 'inputs', files, sync, 'article:has(.facts)', 'label', '.facts .row']);
      views.push(['the page Sync', 'models', own, sync, 'section[aria-labelledby="learn"] li', 'bdi']);
    }
    for (const [view, what, ids, path, ...drawn] of views)
      if (ids.length) add(view, what, ids, await look(path, hasAll(ids), ...drawn));
    const places = { labels: [], versions: [], underway: [], verdicts: [] };
    for (const id of models) {
      const all = (await ask('GET', `/v2/models/${id}/versions?per_page=1000`)).model_versions ?? [];
      const listed = all
        .filter((v) => v.status.code !== untrained)
        .filter((v, i) => i === 0 || [trained, ...underway].includes(v.status.code));
      for (const v of listed) if (underway.includes(v.status.code)) places.underway.push(`versions ${id}/${v.id}`);
      const ids = listed.map((v, i) => [i, `${id}/${v.id}`]);
      const rows = 'section[aria-labelledby="versions-h"] li';
      if (ids.length) add('the versions', 'versions', ids, await look(`/${app}/models/${id}`, hasAll(ids), rows));
    }
    for (const id of inputs) {
      const labels = (await ask('GET', `/v2/inputs/${id}`)).input?.data.concepts ?? [];
      const steps = (await ask('GET', `/v2/inputs/${id}/history`)).operations?.slice(0, 8) ?? [];
      for (const s of steps) if (s.verdict) places.verdicts.push(`step ${s.writer} ${s.seq}`);
      const said = labels.map((c, i) => [i, `${id} ${c.id}`]);
      const made = steps.map((s, i) => [i, `${s.writer} ${s.seq}`]).filter((_, i) => steps[i].seq);
      const path = `/${app}/inputs/${id}`;
      if (made.length)
        add('History', 'step', made, await look(path, hasAll(made), 'section[aria-labelledby="history-h"] ol > li'));
      if (said.length)
        add(
          'a picture',
          'label',
          said,
          await look(path, hasAll(said), 'section[aria-labelledby="said-h"] .groups > li'),
        );
    }
    const [[, summary]] = await look(`/${app}/models`, (drawn) => drawn.length, 'aside .foot a');
    const view = { inputs, models, concepts: concepts.map(({ id }) => id) };
    return { view, ...places, early: { found: [] }, late: { found, summary } };
  }

  const requests = {
    read: ({ prefix }) => read(prefix),
    call: ({ method, path, body }) => ask(method, path, body),
    lists: async () => ({ status: (await ask('GET', '/v2/sync/status')).copy, ...(await listAll(ask)) }),
    reload: begin,
    /** Takes the replica offline, or online again, by the button of the page. */
    offline: async () => {
      await page.evaluate(show, `/sync?app=${app}`);
      await page.getByRole('button', { name: 'Work offline', exact: true }).click();
    },
  };
  await begin();
  return { ask: (name, args = {}) => requests[name](args), close: () => context.close(), isDrawn: true };
}
