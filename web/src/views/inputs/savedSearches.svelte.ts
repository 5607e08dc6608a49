// The searches that a person saved with a name in this browser.
import { type Clause, parse, queryText } from '../../clauses';
import { applications } from '../../host/currentApp.svelte';

export interface Search {
  readonly name: string;
  readonly q: string; // the clauses, in the form of the URL
}

const changed = $state({ count: 0 });

/** Returns the saved searches of an available application, sorted by name. Another account may have left searches of its application here. */
export function searches(app: string): readonly Search[] {
  changed.count;
  return applications().some(({ id }) => id === app) ? read(app) : [];
}

function read(app: string): readonly Search[] {
  try {
    const all: unknown = JSON.parse(localStorage.getItem(`searches.${app}`) ?? '[]');
    return Array.isArray(all) ? all.filter((s) => typeof s?.name === 'string' && typeof s.q === 'string') : [];
  } catch {
    return [];
  }
}

/** Saves a search, and replaces the one with the same name. It throws if the browser permits no storage. */
export function keepSearch(app: string, name: string, clauses: readonly Clause[]): void {
  const others = read(app).filter((one) => one.name !== name);
  saveAll(app, [...others, { name, q: queryText(clauses) }]);
}

/** Deletes a saved search. */
export function forgetSearch(app: string, name: string): void {
  saveAll(
    app,
    read(app).filter((one) => one.name !== name),
  );
}

/** Returns the clauses of a saved search. */
export const clausesOf = (search: Search): Clause[] => parse(search.q);

function saveAll(app: string, all: readonly Search[]): void {
  const sorted = [...all].sort((a, b) => a.name.localeCompare(b.name));
  localStorage.setItem(`searches.${app}`, JSON.stringify(sorted));
  changed.count++;
}
