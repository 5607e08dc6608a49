// Searches that a person gave a name to, kept in this browser.
import { type Clause, parse, queryText } from '../../clauses';

export interface Search {
  readonly name: string;
  readonly q: string; // the clauses, as the address has them
}

const changed = $state({ count: 0 });

/** The searches that are kept of an application, in the order of their names. */
export function searches(app: string): readonly Search[] {
  changed.count;
  try {
    const all: unknown = JSON.parse(localStorage.getItem(`searches.${app}`) ?? '[]');
    return Array.isArray(all) ? all.filter((s) => typeof s?.name === 'string' && typeof s.q === 'string') : [];
  } catch {
    return [];
  }
}

/** Keeps a search by a name; one that had it gives way. Throws where the browser keeps nothing. */
export function keepSearch(app: string, name: string, clauses: readonly Clause[]): void {
  const others = searches(app).filter((one) => one.name !== name);
  put(app, [...others, { name, q: queryText(clauses) }]);
}

/** Forgets a search. */
export function forgetSearch(app: string, name: string): void {
  put(
    app,
    searches(app).filter((one) => one.name !== name),
  );
}

/** The clauses of a search. */
export const clausesOf = (search: Search): Clause[] => parse(search.q);

function put(app: string, all: readonly Search[]): void {
  const sorted = [...all].sort((a, b) => a.name.localeCompare(b.name));
  localStorage.setItem(`searches.${app}`, JSON.stringify(sorted));
  changed.count++;
}
