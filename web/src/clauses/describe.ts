// Describes clauses in words: as the parts of a chip, and as one text for names and labels.
import type { Application } from '../host/application.svelte';
import { number } from '../i18n/i18n.svelte';
import { conceptName } from '../text/conceptNames.svelte';
import type { Clause, Point, Unit } from './clause';
import { m } from './words';

/** Returns the text of a chip, with `value` at the place of its value. */
export function around(c: Clause, value: string): string {
  switch (c.kind) {
    case 'predicted': {
      if (c.negate) return m.search_clause_all_but({ clause: around({ ...c, negate: false }, value) });
      return c.present ? m.search_clause_predicted({ value }) : m.search_clause_predicted_not({ value });
    }
    case 'labelled': {
      if (c.negate) return m.search_clause_all_but({ clause: around({ ...c, negate: false }, value) });
      return c.present ? m.search_clause_labelled({ value }) : m.search_clause_labelled_not({ value });
    }
    case 'metadata': {
      const path = entry(c.json)?.path.join('.') || m.search_clause_metadata();
      return c.negate ? m.search_clause_contains_not({ path, value }) : m.search_clause_contains({ path, value });
    }
    case 'within':
      return c.negate ? m.search_clause_outside({ value }) : m.search_clause_within({ value });
    case 'box':
      return c.negate ? m.search_clause_box_not({ value }) : m.search_clause_box({ value });
    case 'url':
      return c.negate ? m.search_clause_url_not({ value }) : m.search_clause_url({ value });
    case 'input':
      return c.negate ? m.search_clause_input_not({ value }) : m.search_clause_input({ value });
    case 'similar':
      return c.negate ? m.search_clause_unlike({ value }) : m.search_clause_like({ value });
  }
}

/** Returns the value of a chip. */
export function chipValue(c: Clause): string {
  switch (c.kind) {
    case 'predicted':
    case 'labelled':
      return c.name || c.id || '';
    case 'metadata':
      return JSON.stringify(entry(c.json)?.value ?? c.json);
    case 'within':
      return m.search_clause_of({ distance: length(c.radius, c.unit), place: coordinates(c) });
    case 'box':
      return m.search_clause_to({ from: coordinates(c.corners[0]), to: coordinates(c.corners[1]) });
    case 'url':
      return c.url;
    case 'input':
      return short(c.id);
    case 'similar':
      return c.id ? short(c.id) : (c.url ?? m.search_clause_picture());
  }
}

/** Returns a clause in the reader's language. With an application, it also translates the names of public concepts. */
export function describe(c: Clause, app?: Application): string {
  const conceptId = app && (c.kind === 'predicted' || c.kind === 'labelled') && c.id;
  return around(c, conceptId ? conceptName(app, conceptId, chipValue(c)) : chipValue(c));
}

/** Returns a length with its unit. */
export function length(value: number, unit: Unit): string {
  if (unit === 'rad') return m.search_radians({ value: number(value, { maximumSignificantDigits: 4 }) });
  const name = { km: 'kilometer', mi: 'mile', deg: 'degree' }[unit];
  return number(value, { style: 'unit', unit: name, unitDisplay: 'short', maximumSignificantDigits: 4 });
}

/** Returns a place as "latitude, longitude", in degrees with two decimals. */
export function coordinates(at: Point): string {
  return `${at.latitude.toFixed(2)}, ${at.longitude.toFixed(2)}`;
}

function short(id: string): string {
  return id.length > 12 ? `${id.slice(0, 4)}…${id.slice(-2)}` : id;
}

/** Returns the path and the value of metadata with a single value; undefined for other metadata. */
export function entry(json: unknown): { path: string[]; value: unknown } | undefined {
  const path: string[] = [];
  let at = json;
  while (typeof at === 'object' && at !== null && !Array.isArray(at)) {
    const [member, ...others] = Object.entries<unknown>({ ...at });
    if (!member || others.length) break;
    path.push(member[0]);
    at = member[1];
  }
  return path.length ? { path, value: at } : undefined;
}

/** Returns metadata with one value at a path: the opposite of [entry]. */
export function along(path: readonly string[], value: unknown): unknown {
  return path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value);
}
