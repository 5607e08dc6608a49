// The calls of /v2 about one picture.

import { bytesAt, fileUrl, type Schemas, v2 } from '../../api/client';
import type { Application } from '../../host/application.svelte';
import { code, fileName, general } from '../../host/calls';
import { type Json, at as memberAt, parse } from '../../parts/json';

export type Concept = Schemas['ConceptValue'];

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

/** The place of an input in the calls of /v2. */
export const at = (input_id: string) => ({ params: { path: { input_id } } });

export async function readPicture(app: Application, id: string): Promise<Picture> {
  let text = '';
  const host = v2(async (path, init) => {
    const answer = await app.ask(path, init);
    text = await answer.clone().text();
    return answer;
  });
  const { data, created_at: created, status } = (await host.GET('/inputs/{input_id}', at(id))).input;
  return {
    id,
    name: fileName(data.metadata) || id,
    url: data.image.url ?? '',
    crop: data.image.crop ?? [],
    concepts: data.concepts ?? [],
    metadata: memberAt(parse(text), 'input', 'data', 'metadata'),
    place: data.geo?.geo_point,
    created,
    status,
  };
}

/** Returns the source of a picture's bytes, and their properties. */
export const readSource = async (app: Application, id: string): Promise<Schemas['Source']> =>
  (await app.v2.GET('/inputs/{input_id}/source', at(id))).source;

/** Returns the general model's predictions for a stored picture; empty before the picture was analysed. */
export async function readPredictions(app: Application, id: string): Promise<readonly Concept[]> {
  const { outputs } = await app.v2.GET('/inputs/{input_id}/outputs', at(id));
  return outputs[0]?.data.concepts ?? [];
}

/** Returns another model's predictions for a stored picture. hosted: the path of its bytes. */
export async function predict(
  app: Application,
  model_id: string,
  version_id: string,
  hosted: string,
): Promise<readonly Concept[]> {
  const { outputs } = await app.v2.POST('/models/{model_id}/versions/{version_id}/outputs', {
    params: { path: { model_id, version_id } },
    body: { inputs: [{ data: { image: { url: fileUrl } } }] },
    files: { [fileUrl]: await bytesAt(app.ask, hosted) },
  });
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
  const { models } = await app.v2.GET('/models', { params: { query: { per_page: 200 } } });
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
  model.output_info.type_ext === 'concept' && model.model_version?.status.code === code.trained;

/**
 * Writes one value of a picture's metadata; other values do not change. A list is replaced, members of an object are merged, and null
 * changes nothing, so the value is removed instead. metadata: JSON, which is sent as it is, since JavaScript would change some numbers.
 */
export async function describe(app: Application, id: string, metadata: string, action: 'overwrite' | 'remove') {
  const bodySerializer = () =>
    `{"inputs":[{"id":${JSON.stringify(id)},"data":{"metadata":${metadata}}}],"action":"${action}"}`;
  await app.write.PATCH('/inputs', { body: JSON.parse(bodySerializer()), bodySerializer });
}

/** Sets the place of a picture. to: undefined removes the place. */
export async function move(app: Application, id: string, to: Picture['place'], from: Picture['place']): Promise<void> {
  const inputs = [{ id, data: { geo: { geo_point: to ?? from } } }];
  await app.write.PATCH('/inputs', { body: { inputs, action: to ? 'overwrite' : 'remove' } });
}

/** An operation of a picture's history, or a conflict. */
export type Step = Schemas['PastOperation'];

/** Returns at most `limit` pictures that are similar to one, the most similar first, and the number of all that reach the cut-off. */
export async function readSimilar(app: Pick<Application, 'v2' | 'by'>, id: string, limit: number) {
  const query = { ands: [{ output: { input: { id } } }] };
  const scored = await app.v2.POST('/searches/summary', { body: { query, summary: { scores: { bins: 1 } } } });
  const cut = scored.summary.scores?.cut_off?.value ?? 0;
  const near = { ...query, min_score: cut > 0 ? cut : undefined };
  const [{ hits }, { summary }, same] = await Promise.all([
    app.v2.POST('/searches', { body: { query: near, pagination: { page: 1, per_page: limit + 1 } } }),
    app.v2.POST('/searches/summary', { body: { query: near } }),
    readDuplicates(app, id, limit).catch(() => []),
  ]);
  const tiers = new Map(same.map((d) => [d.input.id, d.tier]));
  // Duplicates come first, regardless of their scores.
  const first = same.filter((d) => d.tier !== 'similar').map(({ input, ...d }) => ({ ...d, id: input.id }));
  const rest = hits
    .map(({ input, score }) => ({ id: input.id, score, tier: tiers.get(input.id) ?? ('similar' as const) }))
    .filter((hit) => hit.id !== id && !first.some((f) => f.id === hit.id));
  const count = Math.max(0, summary.matching - 1); // without the picture itself
  return { by: app.by, cut, count, pictures: [...first, ...rest].slice(0, limit) };
}

async function readDuplicates({ v2 }: Pick<Application, 'v2'>, input_id: string, limit: number) {
  const params = { path: { input_id }, query: { per_page: limit } };
  return (await v2.GET('/inputs/{input_id}/duplicates', { params })).duplicates;
}
