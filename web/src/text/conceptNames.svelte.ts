// The names of public concepts in the reader's language. The pages request all names of a language once, because the network has only a
// few hundred concepts.

import { listAll } from '../api/client';
import type { Application } from '../host/application.svelte';
import { language } from '../i18n/i18n.svelte';
import type { LanguageCode } from '../i18n/languages';

let namesByLanguage = $state.raw<Readonly<Record<string, Readonly<Record<string, string>>>>>({}); // by language, by id
const requested = new Set<string>();

/** Reports whether a concept is public. Custom concepts have one name, in the application's language. */
export const isPublicConcept = (id: string): boolean => id.startsWith('ai_');

/** Returns the name of a concept in a language, by default the reader's. Until the names are loaded, it returns `name`. */
export function conceptName(app: Application, id: string, name: string, code = language()): string {
  if (!isPublicConcept(id)) return name;
  request(app, code);
  return namesByLanguage[code]?.[id] ?? name;
}

/** Returns the language of the name that [conceptName] returns; undefined if it is unknown. */
export function conceptLang(id: string, code = language()): string | undefined {
  return isPublicConcept(id) && namesByLanguage[code]?.[id] ? code : undefined;
}

function request(app: Application, code: LanguageCode): void {
  if (requested.has(code)) return;
  requested.add(code);
  read(app, code).then(
    (names) => {
      namesByLanguage = { ...namesByLanguage, [code]: names };
    },
    () => {
      setTimeout(() => requested.delete(code), 5000); // the next use of a name requests them again
    },
  );
}

async function read(app: Application, language: LanguageCode): Promise<Record<string, string>> {
  const body = { concept_query: { name: '*', language } };
  const all = await listAll(
    async (pagination) => (await app.v2.POST('/concepts/searches', { body: { ...body, pagination } })).concepts,
    1000,
  );
  return Object.fromEntries(all.filter((c) => isPublicConcept(c.id)).map((c) => [c.id, c.name]));
}
