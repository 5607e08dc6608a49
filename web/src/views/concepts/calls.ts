// The calls of /v2 about an application's concepts.

import type { Schemas } from '../../api/client';
import type { Application } from '../../host/application.svelte';
import { findConcepts, type NamedConcept } from '../../host/calls';
import type { LanguageCode } from '../../i18n/languages';

/** A concept and its uses. */
export type ConceptUsage = NamedConcept & Omit<Schemas['UsedConcept'], 'app_id'>;

/** Lists a page of the used concepts and of the custom ones. q: the beginning of their names, in a language. */
export async function usage(app: Application, q: string, language: LanguageCode, page: number, per_page: number) {
  const query = { language, q, page, per_page };
  const { total, concepts } = await app.v2.GET('/concepts/usage', { params: { query } });
  return { total, concepts: concepts.map((c): ConceptUsage => ({ ...c, own: c.app_id === app.id })) };
}

/** Lists concepts that nothing uses yet, without those in `but`. q: the beginning of their names, in a language. */
export async function listUnused(
  app: Application,
  q: string,
  language: LanguageCode,
  but: ReadonlySet<string>,
): Promise<ConceptUsage[]> {
  const concepts = await findConcepts(app, `${q}*`, 50, language);
  return concepts.filter((c) => !but.has(c.id)).map((c) => ({ ...c, present: 0, absent: 0, predicted: 0 }));
}

/** Returns the names of the application's models, by id. */
export async function modelNames(app: Application): Promise<ReadonlyMap<string, string>> {
  const { models } = await app.v2.GET('/models', { params: { query: { per_page: 200 } } });
  return new Map(models.map((model) => [model.id, model.name]));
}

export const rename = (app: Application, id: string, name: string): Promise<object> =>
  app.write.PATCH('/concepts', { body: { concepts: [{ id, name }], action: 'overwrite' } });

/** Reports whether a concept can be deleted, as far as its uses are known here. The host also looks at versions and predictions. */
export const isUnused = (c: ConceptUsage): boolean => c.own && !c.present && !c.absent && !c.models?.length;

/** Deletes a custom concept. The host refuses that if anything uses it. */
export const remove = (app: Application, id: string): Promise<object> =>
  app.write.DELETE('/concepts/{concept_id}', { params: { path: { concept_id: id } } });

/** Creates a concept. Its id is its name, like that of a concept which the first label creates. */
export const create = (app: Application, name: string): Promise<object> =>
  app.write.POST('/concepts', { body: { concepts: [{ id: name, name }] } });
