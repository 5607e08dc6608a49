// The calls of /v2 about an application's concepts.
import type { Application } from '../../application.svelte';
import type { components } from '../../v2';

type Schemas = components['schemas'];

/** A concept and its uses. */
export interface ConceptUsage {
  readonly id: string;
  readonly name: string;
  readonly own: boolean;
  readonly present: number; // number of pictures that people labelled as present
  readonly absent: number; // number of pictures that people labelled as absent
  readonly predicted: number; // number of pictures with a prediction of it
  readonly models: readonly string[]; // ids of the custom models with it
}

type Row = Omit<ConceptUsage, 'own'> & { readonly app_id?: string | null };

/** Lists a page of the used concepts and of the custom ones. q: the beginning of their names, in a language. */
export async function usage(app: Application, q: string, language: string, page: number, size: number) {
  const params = new URLSearchParams({ language, q, page: String(page), per_page: String(size) });
  const answer = await app.call<{ total: number; concepts: Row[] }>('GET', `/concepts/usage?${params}`);
  return {
    total: answer.total,
    concepts: answer.concepts.map((c): ConceptUsage => ({ ...c, own: c.app_id === app.id })),
  };
}

/** Lists concepts that nothing uses yet, without those in `but`. q: the beginning of their names, in a language. */
export async function listUnused(
  app: Application,
  q: string,
  language: string,
  but: ReadonlySet<string>,
): Promise<ConceptUsage[]> {
  const { concepts } = await app.call<Schemas['ConceptsAnswer']>('POST', '/concepts/searches', {
    concept_query: { name: `${q}*`, language },
    pagination: { page: 1, per_page: 50 },
  });
  return concepts
    .filter((c) => !but.has(c.id))
    .map(({ id, name, app_id }) => ({
      id,
      name,
      own: app_id === app.id,
      present: 0,
      absent: 0,
      predicted: 0,
      models: [],
    }));
}

/** Returns the names of the application's models, by id. */
export async function modelNames(app: Application): Promise<ReadonlyMap<string, string>> {
  const { models } = await app.call<Schemas['ModelsAnswer']>('GET', '/models?per_page=200');
  return new Map(models.map((model) => [model.id, model.name]));
}

export const rename = (app: Application, id: string, name: string): Promise<object> =>
  app.write('PATCH', '/concepts', { concepts: [{ id, name }], action: 'overwrite' });

/** Reports whether a concept can be deleted, as far as its uses are known here. The host also looks at versions and predictions. */
export const isUnused = (c: ConceptUsage): boolean => c.own && !c.present && !c.absent && !c.models.length;

/** Deletes a custom concept. The host refuses that if anything uses it. */
export const remove = (app: Application, id: string): Promise<object> =>
  app.write('DELETE', `/concepts/${encodeURIComponent(id)}`);

/** Creates a concept. Its id is its name, like that of a concept which the first label creates. */
export const create = (app: Application, name: string): Promise<object> =>
  app.write('POST', '/concepts', { concepts: [{ id: name, name }] });
