// The calls of /v2 by the pages of models. The application chooses the host: the origin, or the replica on this device.

import { call, type Fetch, listAll } from '../../apiCall';
import type { Application, By } from '../../application.svelte';
import { Failure } from '../../console';
import { pathIn } from '../../routes';
import type { components } from '../../v2';

type Schemas = components['schemas'];
export type Model = Schemas['Model'];
export type Version = Schemas['ModelVersion'];
export type Input = Schemas['Input'];
export type Metrics = Schemas['Metrics'] & {
  readonly pictures: number; // number of labelled pictures on which the version was trained
  readonly since?: Since; // missing for the first version
};
/** The differences between a version's training data and the previous version's. */
export type Since = NonNullable<Schemas['MetricsExtension']['since']>;

/** A concept of a model. own: it is a custom concept of this application, so it can be renamed. */
export interface Concept {
  readonly id: string;
  readonly name: string;
  readonly own: boolean;
}

/** A model with its current concepts. */
export interface ModelInfo {
  readonly model: Model;
  readonly concepts: readonly Concept[];
  readonly exclusive: boolean; // one concept per picture
  readonly closed: boolean; // only these things exist
}

/** The data on which a training would be done now. */
export type TrainingSet = Schemas['TrainingSet'];

/** A version's prediction of a concept for a picture. */
export interface Guess {
  readonly id: string;
  readonly name: string;
  readonly value: number;
}

/** The different predictions of two versions. */
export interface Comparison {
  readonly inputs: number;
  readonly changed: number;
  readonly roc_auc?: readonly [number, number]; // of the version, of the other one
  readonly changes: readonly { input: Input; before: readonly Guess[]; after: readonly Guess[] }[];
}

/** The status codes of versions. */
export const code = {
  trained: 21100,
  training: 21101,
  untrained: 21102,
  queued: 21103,
  noData: 21110,
  noPositives: 21111,
  oneClass: 21112,
};

/** The minimum number of labelled pictures for an evaluation of a version. */
export const fewest = 10;

const pageSize = 200; // maximum number of items that one call lists
const path = (...parts: string[]) => `/${parts.map(encodeURIComponent).join('/')}`;

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
  const all = await listAll(pageSize, async (n) => {
    const answer = await app.call<Schemas['ModelsAnswer']>('GET', `/models?page=${n}&per_page=${pageSize}`);
    return answer.models ?? [];
  });
  const isOwn = (one: Model) => one.app_id === app.id;
  return { own: all.filter(isOwn), builtIn: all.filter((one) => !isOwn(one)) };
}

/** Reads a model with its concepts. */
export async function readModel(app: Application, id: string): Promise<ModelInfo> {
  const answer = await app.call<{ model: Model }>('GET', `${path('models', id)}/output_info`);
  const info = answer.model.output_info as Model['output_info'] & { data?: { concepts?: Schemas['Concept'][] } };
  return {
    model: answer.model,
    concepts: (info.data?.concepts ?? []).map((c) => conceptOf(app, c)),
    exclusive: info.output_config?.concepts_mutually_exclusive ?? false,
    closed: info.output_config?.closed_environment ?? false,
  };
}

/** Returns the versions of a model, newest first, without those that no training was started for. */
export async function versions(app: Application, id: string): Promise<Version[]> {
  const all = await listAll(pageSize, async (n) => {
    const answer = await app.call<Schemas['ModelVersionsAnswer']>(
      'GET',
      `${path('models', id)}/versions?page=${n}&per_page=${pageSize}`,
    );
    return answer.model_versions ?? [];
  });
  return all.filter((v) => v.status.code !== code.untrained);
}

/** Reads one version, with the progress of its training. */
async function version(ask: Fetch, model: string, id: string): Promise<Version> {
  const at = `${path('models', model, 'versions', id)}?show=progress`;
  const answer = await call<Schemas['ModelVersionAnswer']>(ask, 'GET', at);
  return answer.model_version as Version;
}

/** The part of an application that knows the place of a version. */
type Places = Pick<Application, 'ask' | 'askRemote' | 'by' | 'offline' | 'marks'>;

/**
 * Reads a version and the host that trains it. A replica receives the versions of the origin a moment later and without progress, so the
 * progress is read from the origin.
 */
export async function readVersion(app: Places, model: string, id: string): Promise<{ version: Version; by: By }> {
  const ignoreUnknown = (failure: unknown) => {
    if (failure instanceof Failure && failure.code === 11101 && app.by === 'device' && !app.offline) return undefined;
    throw failure;
  };
  const local = await version(app.ask, model, id).catch(ignoreUnknown);
  const { by } = app;
  const alone = by !== 'device' || app.offline || app.marks.models.has(model); // the origin does not have a marked model's changes yet
  if (local && (alone || !isUnderway(local) || local.progress !== undefined)) return { version: local, by };
  const remote = await version(app.askRemote, model, id).catch((failure) => {
    if (!local) throw failure;
    return undefined;
  });
  return remote && (!local || remote.progress !== undefined)
    ? { version: remote, by: 'origin' }
    : { version: local as Version, by };
}

/** Returns the quality of a trained version on pictures outside its training; undefined if it is unknown. */
export async function metrics(app: Application, model: string, id: string): Promise<Metrics | undefined> {
  const at = `${path('models', model, 'versions', id)}/metrics?show=sightline`;
  const { model_version: v } = await app.call<Schemas['MetricsAnswer']>('GET', at);
  const { metrics: quality, total_input_count: all = 0 } = v ?? {};
  const { other_inputs: others = 0, since } = quality?.sightline ?? {};
  return quality?.summary && { ...quality, pictures: all - others, ...(since && { since }) };
}

/** The data from which a training would learn now. */
export async function trainingSet(app: Application, model: string): Promise<TrainingSet> {
  const at = `${path('models', model)}/training_set`;
  return (await app.call<{ training_set: TrainingSet }>('GET', at)).training_set;
}

/** Returns the first differences between the predictions of two versions. */
export async function comparison(app: Application, model: string, id: string, other: string): Promise<Comparison> {
  const at = `${path('models', model, 'versions', id)}/comparison?with=${encodeURIComponent(other)}&page=1&per_page=60`;
  const answer = await app.call<{ comparison: Omit<Comparison, 'changes'>; changes?: Comparison['changes'] }>(
    'GET',
    at,
  );
  return { ...answer.comparison, changes: answer.changes ?? [] };
}

/** Returns the training pictures of a version, with their labels at the time of the training. */
export function learnedFrom(app: Application, model: string, id: string): Promise<Input[]> {
  return listAll(pageSize, async (n) => {
    const at = `${path('models', model, 'versions', id)}/inputs?page=${n}&per_page=${pageSize}`;
    return (await app.call<{ inputs?: Input[] }>('GET', at)).inputs ?? [];
  });
}

/** Starts the training of another version. */
export async function train(app: Application, model: string): Promise<Version> {
  const answer = await app.write<{ model: Model }>('POST', `${path('models', model)}/versions`);
  return answer.model.model_version as Version;
}

/** Deletes a version. If it was the newest, the previous version predicts again. */
export async function removeVersion(app: Application, model: string, id: string): Promise<void> {
  await app.write('DELETE', path('models', model, 'versions', id));
}

/** Returns the number of analysed pictures and of all pictures. */
export async function analysisProgress(app: Application): Promise<{ done: number; all: number }> {
  const { counts } = await app.call<{ counts: { processed: number; to_process: number } }>('GET', '/inputs/status');
  return { done: counts.processed, all: counts.processed + counts.to_process };
}

/** Returns the predictions of a version for a picture, the likeliest first. */
export async function predict(app: Application, model: string, id: string, base64: string): Promise<Guess[]> {
  const answer = await app.call<Schemas['OutputsAnswer']>('POST', `${path('models', model, 'versions', id)}/outputs`, {
    inputs: [{ data: { image: { base64 } } }],
  });
  return (answer.outputs?.[0]?.data?.concepts ?? []) as Guess[];
}

/** Creates a model and returns its id. */
export async function create(
  app: Application,
  name: string,
  concepts: readonly string[],
  config: Config,
): Promise<string> {
  const data = { concepts: concepts.map((id) => ({ id })) };
  const answer = await app.write<{ model: Model }>('POST', '/models', {
    model: { name, output_info: { data, output_config: settings(config) } },
  });
  return answer.model.id;
}

export interface Config {
  readonly exclusive: boolean;
  readonly closed: boolean;
}
const settings = (c: Config) => ({ concepts_mutually_exclusive: c.exclusive, closed_environment: c.closed });

/** Renames a model, and changes the settings of its next trainings. */
export async function change(app: Application, id: string, name: string, config: Config): Promise<void> {
  await app.write('PATCH', '/models', {
    models: [{ id, name, output_info: { output_config: settings(config) } }],
    action: 'overwrite',
  });
}

/** Adds a concept to a model (merge), or removes it. */
export async function member(app: Application, id: string, concept: string, action: 'merge' | 'remove'): Promise<void> {
  await app.write('PATCH', '/models', {
    models: [{ id, output_info: { data: { concepts: [{ id: concept }] } } }],
    action,
  });
}

export async function removeModel(app: Application, id: string): Promise<void> {
  await app.write('DELETE', path('models', id));
}

/** Returns the concepts whose names begin with `start`. Custom concepts come first. */
export async function findConcepts(app: Application, start: string): Promise<Concept[]> {
  const answer = await app.call<Schemas['ConceptsAnswer']>('POST', '/concepts/searches?page=1&per_page=8', {
    concept_query: { name: `${start}*` },
  });
  return (answer.concepts ?? []).map((c) => conceptOf(app, c));
}

/** Returns the custom concept with a name. If none exists, it creates one. */
export async function findOrCreateConcept(
  app: Application,
  name: string,
): Promise<{ concept: Concept; isNew: boolean }> {
  const answer = await app.call<Schemas['ConceptsAnswer']>('POST', '/concepts/searches?page=1&per_page=8', {
    concept_query: { name },
  });
  const found = (answer.concepts ?? []).map((c) => conceptOf(app, c)).find((c) => c.own);
  if (found) return { concept: found, isNew: false };
  const created = await app.write<Schemas['ConceptsAnswer']>('POST', '/concepts', { concepts: [{ name }] });
  return { concept: conceptOf(app, created.concepts?.[0] as Schemas['Concept']), isNew: true };
}

/** Renames a custom concept. */
export async function renameConcept(app: Application, id: string, name: string): Promise<void> {
  await app.write('PATCH', '/concepts', { concepts: [{ id, name }], action: 'overwrite' });
}

/** Labels a stored picture with a concept, as present (1) or absent (0). */
export async function label(app: Application, input: string, concept: string, value: 0 | 1): Promise<void> {
  await app.write('PATCH', '/inputs', {
    inputs: [{ id: input, data: { concepts: [{ id: concept, value }] } }],
    action: 'merge',
  });
}

/**
 * Stores a picture with a label for a concept, and reports whether the picture is new. If it is stored already, this only adds the label.
 * id: the id from its bytes.
 */
export async function addExample(
  app: Application,
  id: string,
  name: string,
  base64: string,
  concept?: string,
): Promise<boolean> {
  const labels = concept ? { concepts: [{ id: concept, value: 1 }] } : {};
  try {
    const metadata = name ? { metadata: { name } } : {};
    await app.write('POST', '/inputs', { inputs: [{ id, data: { image: { base64 }, ...labels, ...metadata } }] });
    return true;
  } catch (failure) {
    if (!(failure instanceof Failure && failure.code === 30100)) throw failure;
    if (concept) await label(app, id, concept, 1);
    return false;
  }
}

/** Returns the path of a model's page. */
export const modelPath = (app: Application, ...ids: string[]) => pathIn(app.id, 'models', ...ids);

function conceptOf(app: Application, c: Schemas['Concept']): Concept {
  return { id: c.id ?? '', name: c.name ?? c.id ?? '', own: c.app_id === app.id };
}
