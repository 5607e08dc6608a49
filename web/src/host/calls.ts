// The calls of /v2 that several pages make.

import { base64Of } from '../api/blobs';
import type { Schemas, V2 } from '../api/client';
import { Failure } from '../api/console';
import type { LanguageCode } from '../i18n/languages';
import type { Application } from './application.svelte';

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

/** The codes of an item whose id or URL exists: an input's, a model's. */
export const existsCodes = [30100, 40010];

/** The id of the general model. */
export const general = 'aaa03c23b3724a16a56b629203edc62c';

/** A concept. own: it is a custom concept of the application, so it can be renamed. */
export interface NamedConcept {
  readonly id: string;
  readonly name: string;
  readonly own: boolean;
}

/** The part of an application that most of these calls need. */
type Host = Pick<Application, 'id' | 'v2'>;

/** Finds concepts by name, or by the start of their names followed by `*`. Custom concepts come first. */
export async function findConcepts({ id, v2 }: Host, name: string, limit: number, language?: LanguageCode) {
  const { concepts } = await v2.POST('/concepts/searches', {
    body: { concept_query: { name, language }, pagination: { page: 1, per_page: limit } },
  });
  return concepts.map((c) => ({ id: c.id, name: c.name, language: c.language, own: c.app_id === id }));
}

/** Returns the custom models of an application, at most 200. A list has them before all others. */
export async function ownModels({ id, v2 }: Host): Promise<Schemas['Model'][]> {
  const { models } = await v2.GET('/models', { params: { query: { per_page: 200 } } });
  return models.filter((model) => model.app_id === id);
}

/** Returns the numbers of inputs by the state of their pictures, and their sum. */
export async function countInputs(v2: V2): Promise<Schemas['Counts'] & { readonly all: number }> {
  const { counts } = await v2.GET('/inputs/status');
  return { ...counts, all: counts.processed + counts.to_process + counts.errors };
}

/** Trains a model, and returns when the training has succeeded. If it fails, this throws a Failure with the status of the version. */
export async function train(v2: V2, model: string, pause: () => Promise<void>): Promise<void> {
  const started = await v2.POST('/models/{model_id}/versions', { params: { path: { model_id: model } } });
  const path = { model_id: model, version_id: started.model.model_version.id };
  for (;;) {
    const { model_version: version } = await v2.GET('/models/{model_id}/versions/{version_id}', { params: { path } });
    if (version.status.code === code.trained) return;
    if (![code.training, code.queued].includes(version.status.code)) throw new Failure(200, version.status);
    await pause();
  }
}

/**
 * Stores a picture under the id of its bytes: the same file is the same input everywhere. The input gets a label if a concept is given. If
 * the input exists, this returns undefined.
 */
export async function addPicture(
  v2: V2,
  { id, name, blob }: { id: string; name: string; blob: Blob },
  concept?: string,
): Promise<Schemas['InputItem'] | undefined> {
  const metadata = name ? { name } : undefined;
  const concepts = concept ? [{ id: concept, value: 1 as const }] : undefined;
  const image = { base64: await base64Of(blob) };
  try {
    return (await v2.POST('/inputs', { body: { inputs: [{ id, data: { image, metadata, concepts } }] } })).inputs[0];
  } catch (failure) {
    if (!(failure instanceof Failure && existsCodes.includes(failure.code))) throw failure;
    return undefined;
  }
}

/** A label to write: present, absent, or null, which removes the label. */
export interface LabelChange {
  readonly id: string;
  readonly value: boolean | 0 | 1 | null;
}

/** Writes labels of an input. */
export async function label(v2: V2, input: string, labels: readonly LabelChange[]): Promise<void> {
  const added = labels.flatMap(({ id, value }) => (value === null ? [] : [{ id, value }]));
  const removed = labels.flatMap(({ id, value }) => (value === null ? [{ id }] : []));
  for (const [concepts, action] of [
    [added, 'merge'],
    [removed, 'remove'],
  ] as const) {
    if (concepts.length) await v2.PATCH('/inputs', { body: { inputs: [{ id: input, data: { concepts } }], action } });
  }
}

/** Returns the file name in the metadata of an input; empty if there is none. */
export function fileName(metadata: unknown): string {
  const members: Record<string, unknown> = Object(metadata);
  const texts = [members.name, members.file, members.filename].filter((member) => typeof member === 'string');
  return texts.find(Boolean) ?? '';
}

/** Returns the path of a URL of hosted bytes; empty for other URLs. */
export const hostedPath = (url = ''): string => (/\/hosted\//.test(url) ? new URL(url, 'http://here').pathname : '');
