// The calls of /v2 about one picture.

import { call, type Fetch } from '../../apiCall';
import type { Application } from '../../application.svelte';
import { Failure } from '../../console';
import { at, type Json, parse } from '../../parts/json';
import type { components } from '../../v2';

type Schemas = components['schemas'];
export type Concept = Schemas['ConceptValue'];
export const general = 'aaa03c23b3724a16a56b629203edc62c';
export const trained = 21100;

/** A picture. Its metadata keep their original JSON text. */
export interface Picture {
  readonly id: string;
  readonly name: string; // file name from the metadata; without one, the id
  readonly url: string; // URL from which it was added, or URL of its bytes at the host
  readonly crop: readonly number[];
  readonly concepts: readonly Concept[];
  readonly metadata: Json | undefined;
  readonly place: { readonly latitude: number; readonly longitude: number } | undefined;
  readonly created: string;
  readonly status: Schemas['Status'];
}

const path = (id: string) => `/inputs/${encodeURIComponent(id)}`;

export async function readPicture(app: Application, id: string): Promise<Picture> {
  let text = '';
  const listen: Fetch = async (address, init) => {
    const answer = await app.ask(address, init);
    text = await answer.clone().text();
    return answer;
  };
  const { input } = await call<Schemas['InputAnswer']>(listen, 'GET', path(id));
  const { data, created_at: created, status } = input;
  const metadata = data.metadata as { name?: unknown; file?: unknown; filename?: unknown } | undefined | null;
  const name = [metadata?.name, metadata?.file, metadata?.filename].find((n) => typeof n === 'string' && n !== '') as
    | string
    | undefined;
  return {
    id: input.id,
    name: name ?? input.id,
    url: data.image.url ?? '',
    crop: data.image.crop ?? [],
    concepts: data.concepts ?? [],
    metadata: at(parse(text), 'input', 'data', 'metadata'),
    place: data.geo?.geo_point,
    created,
    status,
  };
}

/** Returns the source of a picture's bytes, and their properties. */
export const readSource = async (app: Application, id: string): Promise<Schemas['Source']> =>
  (await app.call<Schemas['SourceAnswer']>('GET', `${path(id)}/source`)).source;

/** Returns the general model's predictions for a stored picture; empty before the picture was analysed. */
export async function readPredictions(app: Application, id: string): Promise<readonly Concept[]> {
  const { outputs } = await app.call<Schemas['StoredOutputsAnswer']>('GET', `${path(id)}/outputs`);
  return outputs[0]?.data.concepts ?? [];
}

/** Returns another model's predictions for a stored picture. hosted: the path of its bytes. */
export async function predict(
  app: Application,
  model: string,
  version: string,
  hosted: string,
): Promise<readonly Concept[]> {
  const answer = await app.ask(hosted);
  if (!answer.ok) throw new Failure(answer.status, { description: answer.statusText });
  const { base64Of } = await import('../look/pictures');
  const inputs = [{ data: { image: { base64: await base64Of(await answer.blob()) } } }];
  const outputsPath = `/models/${encodeURIComponent(model)}/versions/${encodeURIComponent(version)}/outputs`;
  const { outputs } = await app.call<Schemas['OutputsAnswer']>('POST', outputsPath, { inputs });
  return outputs[0]?.data.concepts ?? [];
}

/** A model that can predict concepts. */
export interface Predictor {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly own: boolean;
}

/** Returns the general model and the trained custom models of the application. */
export async function readPredictors(app: Application): Promise<readonly Predictor[]> {
  const { models } = await app.call<Schemas['ModelsAnswer']>('GET', '/models?per_page=200');
  return models
    .filter((model) => model.id === general || (model.app_id === app.id && predicts(model)))
    .map((model) => ({
      id: model.id,
      name: model.display_name ?? model.name,
      version: model.model_version?.id ?? '',
      own: model.id !== general,
    }))
    .sort((a, b) => Number(a.own) - Number(b.own));
}

const predicts = (model: Schemas['Model']) =>
  model.output_info.type_ext === 'concept' && model.model_version?.status.code === trained;

/** Labels a picture with a concept, present or absent, or removes the label (null). */
export async function label(app: Application, id: string, concept: string, value: boolean | null): Promise<void> {
  const change = value === null ? { id: concept } : { id: concept, value };
  await app.write('PATCH', '/inputs', {
    inputs: [{ id, data: { concepts: [change] } }],
    action: value === null ? 'remove' : 'merge',
  });
}

/**
 * Writes one value of a picture's metadata; other values do not change. A list is replaced, members of an object are merged, and null
 * changes nothing, so the value is removed instead.
 */
export async function describe(app: Application, id: string, metadata: string, action: 'overwrite' | 'remove') {
  const body = `{"inputs":[{"id":${JSON.stringify(id)},"data":{"metadata":${metadata}}}],"action":"${action}"}`;
  const request = JSON.parse(body) as object;
  if (JSON.stringify(request) === body) {
    await app.write('PATCH', '/inputs', request);
    return;
  }
  // JavaScript would change a number in the metadata, so the typed text is sent instead.
  await call((address, init) => app.ask(address, { ...init, body }), 'PATCH', '/inputs', request);
  await app.outbox?.refresh();
  app.changes++;
}

/** Sets the place of a picture. to: undefined removes the place. */
export async function move(app: Application, id: string, to: Picture['place'], from: Picture['place']): Promise<void> {
  const geo = { geo_point: to ?? from };
  await app.write('PATCH', '/inputs', { inputs: [{ id, data: { geo } }], action: to ? 'overwrite' : 'remove' });
}

/** Deletes a picture permanently. */
export const remove = (app: Application, id: string): Promise<object> => app.write('DELETE', path(id));

/** An operation of a picture's history. */
export type Step = Omit<Schemas['Operation'], 'state' | 'by' | 'seq'> & {
  readonly seq?: number; // missing for an operation that only the picture's record contains
  readonly by?: string;
  readonly state?: 'queued' | 'sent' | 'confirmed';
  readonly position?: number; // position in the origin's log; missing if it is not in the log yet
  readonly verdict?: string;
};

/** Returns the operations on a picture, newest first. complete: whether this host knows all of them. */
export const readHistory = (app: Application, id: string): Promise<{ complete: boolean; operations: Step[] }> =>
  app.call('GET', `${path(id)}/history`);

/** A picture that is similar to another one. tier: the same file, the same picture in other bytes, or similar. */
export interface Alike {
  readonly input: Schemas['Input'];
  readonly score: number;
  readonly tier: 'same_file' | 're_encoded' | 'similar';
}
const readAlike = async (app: Application, id: string, limit: number): Promise<Alike[]> =>
  (await app.call<{ duplicates: Alike[] }>('GET', `${path(id)}/duplicates?per_page=${limit}`)).duplicates;

/** A similar picture, by id. */
export type SimilarPicture = { readonly id: string } & Pick<Alike, 'score' | 'tier'>;

/** Returns at most `limit` pictures that are similar to one, the most similar first, and the number of all that reach the cut-off. */
export async function readSimilar(app: Application, id: string, limit: number) {
  const query = { ands: [{ output: { input: { id } } }] };
  type Answer = { summary: Schemas['Summary'] };
  const scored = await app.call<Answer>('POST', '/searches/summary', { query, summary: { scores: { bins: 1 } } });
  const cut = scored.summary.scores?.cut_off?.value ?? 0;
  const near = { ...query, ...(cut > 0 && { min_score: cut }) };
  const [{ hits }, { summary }, same] = await Promise.all([
    app.call<Schemas['HitsAnswer']>('POST', '/searches', { query: near, pagination: { page: 1, per_page: limit + 1 } }),
    app.call<Answer>('POST', '/searches/summary', { query: near }),
    readAlike(app, id, limit).catch((): Alike[] => []),
  ]);
  const tiers = new Map(same.map((a) => [a.input.id, a.tier]));
  // Duplicates come first, regardless of their scores.
  const first = same
    .filter((a) => a.tier !== 'similar')
    .map((a): SimilarPicture => ({ id: a.input.id, score: a.score, tier: a.tier }));
  const rest = hits
    .map(({ input, score }): SimilarPicture => ({ id: input.id, score, tier: tiers.get(input.id) ?? 'similar' }))
    .filter((hit) => hit.id !== id && !first.some((f) => f.id === hit.id));
  const count = Math.max(0, summary.matching - 1); // without the picture itself
  return { by: app.by, cut, count, pictures: [...first, ...rest].slice(0, limit) };
}

/** Returns the scopes of this page's credential, which determine the parts of a picture that the page can read. */
export async function mayRead(app: Application): Promise<ReadonlySet<string>> {
  const { scopes } = await app.call<Schemas['ScopesAnswer']>('GET', '/myscopes');
  return new Set(scopes);
}

/** Returns the path of a URL of hosted bytes; empty for other URLs. */
export const hostedPath = (url: string | undefined): string =>
  url && /\/hosted\//.test(url) ? new URL(url, 'http://here').pathname : '';
