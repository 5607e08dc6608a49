// The names of public concepts in the reader's language. A language's names are asked for once, for all pages: the
// network knows some hundreds.
import type { Application } from './application.svelte';
import { language } from './i18n.svelte';

let known = $state.raw<Readonly<Record<string, Readonly<Record<string, string>>>>>({}); // by language, by id
const asked = new Set<string>();
const page = 1000; // the most that one call lists

/** Whether a concept is public: own ones have one name, in the application's language. */
export const isPublic = (id: string): boolean => id.startsWith('ai_');

/** The name of a concept in a language, by default the reader's; until that is known, the name that came with it. */
export function conceptName(app: Application, id: string, name: string, tongue = language()): string {
  if (!isPublic(id)) return name;
  ask(app, tongue);
  return known[tongue]?.[id] ?? name;
}

/** The language of that name; undefined if it is unknown. */
export function conceptLang(id: string, tongue = language()): string | undefined {
  return isPublic(id) && known[tongue]?.[id] ? tongue : undefined;
}

function ask(app: Application, tongue: string): void {
  if (asked.has(tongue)) return;
  asked.add(tongue);
  read(app, tongue).then(
    (names) => {
      known = { ...known, [tongue]: names };
    },
    () => {
      setTimeout(() => asked.delete(tongue), 5000); // the next use of a name requests them again
    },
  );
}

async function read(app: Application, tongue: string): Promise<Record<string, string>> {
  const names: Record<string, string> = {};
  for (let n = 1; ; n++) {
    const { concepts } = await app.call<{ concepts: { id: string; name: string }[] }>('POST', '/concepts/searches', {
      concept_query: { name: '*', language: tongue },
      pagination: { page: n, per_page: page },
    });
    for (const c of concepts) if (isPublic(c.id)) names[c.id] = c.name;
    if (concepts.length < page) return names;
  }
}
