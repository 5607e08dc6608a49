// The calls of /v2 by the pages of models. The application chooses the host: the origin, or the replica on this device.

import { fileUrl, listAll, type Schemas, type V2 } from '../../api/client';
import { Failure } from '../../api/console';
import type { Application, By } from '../../host/application.svelte';
import { addPicture, code, findConcepts, label, type NamedConcept } from '../../host/calls';
import { pathIn } from '../../routing/routes';

export type Model = Schemas['Model'];
export type Version = Schemas['ModelVersion'];
export type Metrics = Schemas['Metrics'] & {
  readonly pictures: number; // number of labelled pictures on which the version was trained
  readonly since?: Since; // missing for the first version
};
/** The differences between a version's training data and the previous version's. */
export type Since = NonNullable<Schemas['MetricsExtension']['since']>;

/** A model with its current concepts. */
export interface ModelInfo {
  readonly model: Schemas['ModelConcepts'];
  readonly concepts: readonly NamedConcept[];
  readonly exclusive: boolean; // one concept per picture
  readonly closed: boolean; // only these things exist
}

/** The data on which a training would be done now. */
export type TrainingSet = Schemas['TrainingSet'];

/** A version's prediction of a concept for a picture. */
export type Guess = Schemas['JudgedConcept'];

/** The minimum number of labelled pictures for an evaluation of a version. */
export const fewest = 10;

/** The place of a model in the calls of /v2. */
export const at = (model_id: string) => ({ params: { path: { model_id } } });
/** The place of a version in the calls of /v2. */
export const versionAt = (model_id: string, version_id: string) => ({ params: { path: { model_id, version_id } } });

/** Reports whether a version is queued or in training. */
export function isUnderway(v: Version | undefined): boolean {
  return v?.status.code === code.queued || v?.status.code === code.training;
}

/** Reports whether a version is trained, so that it can predict. */
export function isTrained<V extends Version>(v: V | undefined): v is V & { status: { code: 21100 } } {
  return v?.status.code === code.trained;
}

/** Reports whether a version was trained without a labelled picture. It predicts nothing. */
export function isWithoutLabels(v: Version | undefined): boolean {
  return isTrained(v) && v.status.details !== undefined;
}

/** Returns all models. own: the application's custom models. builtIn: the built-in models. */
export async function models(app: Application): Promise<{ own: Model[]; builtIn: Model[] }> {
  const all = await listAll(async (query) => (await app.v2.GET('/models', { params: { query } })).models);
  const isOwn = (one: Model) => one.app_id === app.id;
  return { own: all.filter(isOwn), builtIn: all.filter((one) => !isOwn(one)) };
}

/** Reads a model with its concepts. */
export async function readModel(app: Application, id: string): Promise<ModelInfo> {
  const { model } = await app.v2.GET('/models/{model_id}/output_info', at(id));
  const { data, output_config: config } = model.output_info;
  return {
    model,
    concepts: (data?.concepts ?? []).map((c) => ({ id: c.id, name: c.name, own: c.app_id === app.id })),
    exclusive: config?.concepts_mutually_exclusive ?? false,
    closed: config?.closed_environment ?? false,
  };
}

/** Returns the versions of a model, newest first, without those that no training was started for. */
export async function versions(app: Application, id: string): Promise<Version[]> {
  const path = { model_id: id };
  const all = await listAll(
    async (query) => (await app.v2.GET('/models/{model_id}/versions', { params: { path, query } })).model_versions,
  );
  return all.filter((v) => v.status.code !== code.untrained);
}

/** Reads one version, with the progress of its training. */
async function version(v2: V2, model_id: string, version_id: string): Promise<Version> {
  const params = { path: { model_id, version_id }, query: { show: ['progress'] } } as const;
  return (await v2.GET('/models/{model_id}/versions/{version_id}', { params })).model_version;
}

/** The part of an application that knows the place of a version. */
type Places = Pick<Application, 'v2' | 'remote' | 'by' | 'offline' | 'marks'>;

/**
 * Reads a version and the host that trains it. A replica receives the versions of the origin a moment later and without progress, so the
 * progress is read from the origin.
 */
export async function readVersion(app: Places, model: string, id: string): Promise<{ version: Version; by: By }> {
  const ignoreUnknown = (failure: unknown) => {
    if (failure instanceof Failure && failure.code === 11101 && app.by === 'device' && !app.offline) return undefined;
    throw failure;
  };
  const local = await version(app.v2, model, id).catch(ignoreUnknown);
  const { by } = app;
  if (!local) return { version: await version(app.remote, model, id), by: 'origin' };
  const alone = by !== 'device' || app.offline || app.marks.models.has(model); // the origin does not have a marked model's changes yet
  const isKnown = alone || !isUnderway(local) || local.progress !== undefined;
  const remote = isKnown ? undefined : await version(app.remote, model, id).catch(() => undefined);
  return remote?.progress === undefined ? { version: local, by } : { version: remote, by: 'origin' };
}

/** Returns the quality of a trained version on pictures outside its training; undefined if it is unknown. */
export async function metrics(app: Application, model_id: string, version_id: string): Promise<Metrics | undefined> {
  const params = { path: { model_id, version_id }, query: { show: ['sightline'] } } as const;
  const { model_version: v } = await app.v2.GET('/models/{model_id}/versions/{version_id}/metrics', { params });
  const { other_inputs: others = 0, since } = v.metrics.sightline ?? {};
  return v.metrics.summary && { ...v.metrics, pictures: (v.total_input_count ?? 0) - others, since };
}

/** Returns the first differences between the predictions of two versions. */
export async function comparison(app: Application, model_id: string, version_id: string, other: string) {
  const params = { path: { model_id, version_id }, query: { with: other, page: 1, per_page: 60 } };
  const answer = await app.v2.GET('/models/{model_id}/versions/{version_id}/comparison', { params });
  return { ...answer.comparison, changes: answer.changes };
}

/** Returns the predictions of a version for a picture, the likeliest first. */
export async function predict(app: Application, model: string, id: string, picture: Blob): Promise<readonly Guess[]> {
  const { outputs } = await app.v2.POST('/models/{model_id}/versions/{version_id}/outputs', {
    ...versionAt(model, id),
    body: { inputs: [{ data: { image: { url: fileUrl } } }] },
    files: { [fileUrl]: picture },
  });
  return outputs[0]?.data.concepts ?? [];
}

/** Creates a model and returns its id. */
export async function create(app: Application, name: string, ids: readonly string[], config: Config): Promise<string> {
  const data = { concepts: ids.map((id) => ({ id })) };
  const answer = await app.write.POST('/models', {
    body: { model: { name, output_info: { data, output_config: settings(config) } } },
  });
  return 'model' in answer ? answer.model.id : '';
}

export interface Config {
  readonly exclusive: boolean;
  readonly closed: boolean;
}
const settings = (c: Config) => ({ concepts_mutually_exclusive: c.exclusive, closed_environment: c.closed });

/** Renames a model, and changes the settings of its next trainings. */
export async function change(app: Application, id: string, name: string, config: Config): Promise<void> {
  const models = [{ id, name, output_info: { output_config: settings(config) } }];
  await app.write.PATCH('/models', { body: { models, action: 'overwrite' } });
}

/** Adds a concept to a model (merge), or removes it. */
export async function member(app: Application, id: string, concept: string, action: 'merge' | 'remove'): Promise<void> {
  const models = [{ id, output_info: { data: { concepts: [{ id: concept }] } } }];
  await app.write.PATCH('/models', { body: { models, action } });
}

/** Returns the custom concept with a name. If none exists, it creates one. */
export async function findOrCreateConcept(
  app: Application,
  name: string,
): Promise<{ concept: NamedConcept; isNew: boolean }> {
  const found = (await findConcepts(app, name, 8)).find((c) => c.own);
  if (found) return { concept: found, isNew: false };
  const { concepts } = await app.write.POST('/concepts', { body: { concepts: [{ name }] } });
  const [created = { id: name, name }] = concepts;
  return { concept: { id: created.id, name: created.name, own: true }, isNew: true };
}

/** Renames a custom concept. */
export async function renameConcept(app: Application, id: string, name: string): Promise<void> {
  await app.write.PATCH('/concepts', { body: { concepts: [{ id, name }], action: 'overwrite' } });
}

/**
 * Stores a picture with a label for a concept, and reports whether the picture is new. If it is stored already, this only adds the label.
 * id: the id from its bytes.
 */
export async function addExample(
  app: Application,
  p: { id: string; name: string; blob: Blob },
  concept?: string,
): Promise<boolean> {
  const isNew = (await addPicture(app.write, p, concept)) !== undefined;
  if (!isNew && concept) await label(app.write, p.id, [{ id: concept, value: 1 }]);
  return isNew;
}

/** Returns the path of a model's page. */
export const modelPath = (app: Application, ...ids: string[]) => pathIn(app.id, 'models', ...ids);
