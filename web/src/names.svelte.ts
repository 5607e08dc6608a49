// The names of public concepts in the reader's language. The pages request all names of a language once, because the network has only a
// few hundred concepts.
import type { Application } from './application.svelte';
import { language } from './i18n.svelte';

let namesByLanguage = $state.raw<Readonly<Record<string, Readonly<Record<string, string>>>>>({}); // by language, by id
const requested = new Set<string>();
const page = 1000; // the most that one call lists

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

function request(app: Application, code: string): void {
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

async function read(app: Application, code: string): Promise<Record<string, string>> {
  const names: Record<string, string> = {};
  for (let n = 1; ; n++) {
    const { concepts } = await app.call<{ concepts: { id: string; name: string }[] }>('POST', '/concepts/searches', {
      concept_query: { name: '*', language: code },
      pagination: { page: n, per_page: page },
    });
    for (const c of concepts) if (isPublicConcept(c.id)) names[c.id] = c.name;
    if (concepts.length < page) return names;
  }
}
