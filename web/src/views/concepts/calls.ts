// The calls of /v2 about an application's concepts.
import type { Application } from '../../application.svelte';
import type { components } from '../../v2';

type Schemas = components['schemas'];

/** A concept and what it is used for. */
export interface ConceptUsage {
  readonly id: string;
  readonly name: string;
  readonly own: boolean;
  readonly present: number; // pictures that people said to show it
  readonly absent: number; // and not to
  readonly predicted: number; // pictures that are predicted to
  readonly models: readonly string[]; // ids of the own models that have it
}

type Row = Omit<ConceptUsage, 'own'> & { readonly app_id?: string | null };

/** A page of the concepts that are used, and of the application's own; q: how their names begin, in a language. */
export async function usage(app: Application, q: string, language: string, page: number, size: number) {
  const wanted = new URLSearchParams({ language, q, page: String(page), per_page: String(size) });
  const answer = await app.call<{ total: number; concepts: Row[] }>('GET', `/concepts/usage?${wanted}`);
  return {
    total: answer.total,
    concepts: answer.concepts.map((c): ConceptUsage => ({ ...c, own: c.app_id === app.id })),
  };
}

/** Concepts that models know and nothing uses yet, whose names begin so. */
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

/** The names of the application's models, by their ids. */
export async function modelNames(app: Application): Promise<ReadonlyMap<string, string>> {
  const { models } = await app.call<Schemas['ModelsAnswer']>('GET', '/models?per_page=200');
  return new Map(models.map((model) => [model.id, model.name]));
}

export const rename = (app: Application, id: string, name: string): Promise<object> =>
  app.write('PATCH', '/concepts', { concepts: [{ id, name }], action: 'overwrite' });

/** Makes a concept; its id is its name, as where a first use makes one. */
export const create = (app: Application, name: string): Promise<object> =>
  app.write('POST', '/concepts', { concepts: [{ id: name, name }] });
