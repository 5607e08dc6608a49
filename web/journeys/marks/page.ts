// A page of Studio in Node: the class Application with its outbox and its replica, and the functions with which the views read data and
// choose marks. Each page is a thread, because the pages' modules have one session. It answers the requests of its owner one by one.
import { register } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';
import { listAll } from '../../src/api/client';
import { Failure } from '../../src/api/console';
import { application } from '../../src/host/application.svelte';
import { ownModels } from '../../src/host/calls';
import { loadSession } from '../../src/host/session.svelte';
import { type Marked, markOf, summaryParts } from '../../src/host/syncMarks';
import { usage } from '../../src/views/concepts/calls';
import { at, readPicture, type Step } from '../../src/views/input/calls';
import { markOf as markOfLabel, markOfStep, pendingOf } from '../../src/views/input/marks';
import { isUnderway, type Version, versions } from '../../src/views/models/calls';
import { listed, markOfVersion } from '../../src/views/models/versions';

declare global {
  var operations: string[]; // the names of the operations that hosts have answered
}

/** A page's data, as far as they have marks. */
interface View {
  readonly inputs: readonly string[];
  readonly labels: readonly (readonly [input: string, concept: string])[];
  readonly steps: readonly Step[];
  readonly concepts: readonly string[];
  readonly models: readonly string[];
  readonly versions: readonly (readonly [model: string, version: Version])[];
}

const { app: id, runtime, adapter } = workerData;
if (runtime) {
  const resolve = `(name, context, next) => name === '/runtime/index.js' ? { url: '${adapter}', shortCircuit: true } : next(name, context)`;
  register(`data:text/javascript,export const resolve = ${encodeURIComponent(resolve)}`);
}
await loadSession();
const app = application(id);
const empty: View = { inputs: [], labels: [], steps: [], concepts: [], models: [], versions: [] };
let view = empty;
type Shown = [view: string, thing: string, mark: string];

/** Ignores that a thing was deleted at another host since it was listed. */
function ignoreMissing(failure: unknown): undefined {
  if (!(failure instanceof Failure && failure.status === 404)) throw failure;
}

/**
 * Reads the data of the views that show marks: the grid, each picture, the concepts, the models and their versions. It returns the marks
 * that each view shows at once, before the lists of operations were read again.
 */
async function read(prefix: string): Promise<Shown[]> {
  const isOwn = (one: { id: string }) => one.id.startsWith(prefix);
  const early: Shown[] = [];
  view = empty;
  const show = (part: Partial<View>) => {
    early.push(...shown({ ...empty, ...part }));
    for (const [name, all] of Object.entries(part)) view = { ...view, [name]: [...view[name as keyof View], ...all] };
  };
  const { inputs } = await app.v2.GET('/inputs', { params: { query: { page: 1, per_page: 1000 } }, each: true });
  show({ inputs: inputs.filter(isOwn).map(({ id }) => id) });
  for (const id of view.inputs) {
    const picture = await readPicture(app, id).catch(ignoreMissing);
    show({ labels: picture?.concepts.map((c) => [id, c.id] as const) ?? [] });
    show({ steps: (await app.v2.GET('/inputs/{input_id}/history', at(id)).catch(ignoreMissing))?.operations ?? [] });
  }
  show({ models: (await ownModels(app)).filter(isOwn).map(({ id }) => id) });
  for (const id of view.models) {
    const all = await versions(app, id).catch(ignoreMissing);
    show({ versions: listed(all ?? []).map((v) => [id, v] as const) });
  }
  const concepts = await listAll(async ({ page, per_page }) => (await usage(app, '', 'en', page, per_page)).concepts);
  show({ concepts: concepts.filter(isOwn).map(({ id }) => id) });
  return early;
}

/** Returns the marks that the views show for data. An empty text: no mark. */
function shown({ inputs, labels, steps, concepts, models, versions }: View): Shown[] {
  const { marks } = app;
  const found: Shown[] = [];
  const add = (view: string, thing: string, mark: string | undefined) => found.push([view, thing, mark ?? '']);
  for (const input of inputs) {
    add('the page Sync', `inputs ${input}`, app.markOf('inputs', input));
    add('the grid', `inputs ${input}`, marks.inputs.get(input));
  }
  for (const [input, concept] of labels)
    add('a picture', `label ${input} ${concept}`, markOfLabel(pendingOf(app), input, concept));
  for (const step of steps) if (step.seq) add('History', `step ${step.writer} ${step.seq}`, markOfStep(step));
  for (const concept of concepts) add('the concepts', `concepts ${concept}`, marks.concepts.get(concept));
  for (const model of models) {
    add('the page Sync', `models ${model}`, app.markOf('models', model));
    add('the models', `models ${model}`, marks.models.get(model));
  }
  for (const [model, version] of versions)
    add('the versions', `versions ${model}/${version.id}`, markOfVersion(app, model, version));
  return found;
}

/** Returns the marks that the page shows for the data that it has read, and for the things of its last write. */
function marks(things: readonly (readonly [Marked, string])[] = []) {
  const found = shown(view);
  for (const [what, key] of things) found.push(['a list', `${what} ${key}`, app.markOf(what, key) ?? '']);
  const parts = summaryParts(app.syncSummary, app.offline);
  return { found, summary: markOf(app.syncSummary), parts };
}

const requests = {
  /** Sends a write as the views do. It returns the marks at once, before the views read again. */
  async write({ method, path, body, things }: { method: 'POST'; path: string; body: object; things: [] }) {
    globalThis.operations = [];
    const send = app.write[method] as unknown as (path: string, init: object) => Promise<object>;
    const failure = await send(path, { body }).then(
      () => undefined,
      (failure) => ({ status: failure.status, code: failure.code, message: String(failure) }),
    );
    return { failure, operations: globalThis.operations, ...marks(things) };
  },
  /** Reads the data of the views, and returns the marks before and after the lists of operations were read again. */
  async read({ prefix }: { prefix: string }) {
    const early = await read(prefix);
    for (let left = 400; app.outbox && !app.outbox.areMarksCurrent; left--) {
      if (!left) throw new Error('the lists are not read');
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    const underway = view.versions.filter(([, v]) => isUnderway(v)).map(([model, v]) => `versions ${model}/${v.id}`);
    const verdicts = view.steps.filter((step) => step.verdict).map((step) => `step ${step.writer} ${step.seq}`);
    return { view, underway, verdicts, early: { found: early }, late: marks() };
  },
  /** Returns the sync status, the pending operations and the conflicts at the replica, as the host lists them. */
  async lists() {
    const { copy } = app;
    if (!copy?.status) return undefined;
    const { v2 } = copy;
    const query = (query: { page: number; per_page: number }) => ({ params: { query } });
    return {
      status: (await v2.GET('/sync/status')).copy,
      operations: await listAll(async (q) => (await v2.GET('/sync/outbox', query(q))).operations, 1000),
      conflicts: await listAll(async (q) => (await v2.GET('/sync/conflicts', query(q))).conflicts, 1000),
    };
  },
  /** Sends a call to the replica, without the page. */
  async call({ method, path, body }: { method: string; path: string; body?: object }) {
    const answer = await (app.copy as NonNullable<typeof app.copy>).ask(path, {
      method,
      body: body && JSON.stringify(body),
    });
    return { operations: answer.headers.get('X-Sightline-Operations'), ...(await answer.json()) };
  },
  async begin() {
    await app.begin();
    const { state } = app.copy?.device ?? {};
    if (state?.is === 'failed') throw state.failure;
    return app.copy?.status;
  },
  async offline({ on }: { on: boolean }) {
    app.copy?.setOfflineByChoice(on);
  },
  async close() {
    await app.close();
    return { local: workerData.local, session: workerData.session };
  },
};

parentPort?.on('message', async ({ id, name, args }: { id: number; name: keyof typeof requests; args: never }) => {
  try {
    parentPort?.postMessage({ id, value: await requests[name](args) });
  } catch (failure) {
    parentPort?.postMessage({ id, failure: failure instanceof Error ? failure.stack : String(failure) });
  }
});
parentPort?.postMessage({ id: 0 });
