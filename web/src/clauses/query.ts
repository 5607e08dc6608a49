// Converts clauses to and from the form of the API. POST /v2/searches takes {"ands": […]}, and the URL of a page contains the same array.
import type { Schemas } from '../api/client';
import { pathIn } from '../routing/routes';
import { type Clause, type Crop, type Point, type Unit, units } from './clause';
import { pictureOf } from './pictures';

type Json = Readonly<Record<string, unknown>>;

const types = {
  km: 'withinKilometers',
  mi: 'withinMiles',
  deg: 'withinDegrees',
  rad: 'withinRadians',
} as const satisfies Record<Unit, string>;

/**
 * Returns the query of a search, with the bytes of dropped pictures. Call `ready` of pictures.ts first. A picture that is no longer on
 * this device is sent as its name, and the search refuses that.
 */
export function toQuery(clauses: readonly Clause[]): { ands: Schemas['Clause'][] } {
  return { ands: clauses.map((c) => shape(c, (name) => ({ base64: pictureOf(name) ?? name }))) };
}

/** Returns clauses as text for a URL or a saved search. It contains the name of a dropped picture, not its bytes. */
export function queryText(clauses: readonly Clause[]): string {
  return JSON.stringify(clauses.map((c) => shape(c, (dropped) => ({ dropped }))));
}

/** Returns the path of the page with the results of clauses. */
export function address(app: string, page: 'inputs' | 'search', clauses: readonly Clause[]): string {
  const path = pathIn(app, page);
  return clauses.length ? `${path}?q=${encodeURIComponent(queryText(clauses))}` : path;
}

/** Returns the members of an image for the name of a dropped picture. */
type Dropped = (name: string) => { base64?: string; dropped?: string };

function shape(c: Clause, dropped: Dropped): Schemas['Clause'] {
  return { ...positive(c, dropped), ...(c.negate && { negate: true }) };
}

function positive(c: Clause, dropped: Dropped): Schemas['Clause'] {
  switch (c.kind) {
    case 'predicted':
    case 'labelled': {
      const data = { concepts: [{ ...(c.id && { id: c.id }), ...(c.name && { name: c.name }), value: c.present }] };
      return c.kind === 'labelled' ? { input: { data } } : { output: { data } };
    }
    case 'metadata':
      return { input: { data: { metadata: c.json } } };
    case 'within': {
      const geo_limit = { type: types[c.unit], value: c.radius };
      return { input: { data: { geo: { geo_point: point(c), geo_limit } } } };
    }
    case 'box':
      return { input: { data: { geo: { geo_box: [corner(c.corners[0]), corner(c.corners[1])] } } } };
    case 'url':
      return { input: { data: { image: { url: c.url } } } };
    case 'input':
      return { input: { id: c.id } };
    case 'similar': {
      const image = {
        ...(c.url && { url: c.url }),
        ...(c.dropped && dropped(c.dropped)),
        ...(c.base64 && { base64: c.base64 }),
        ...(c.crop && { crop: c.crop }),
      };
      return { output: { input: { ...(c.id && { id: c.id }), data: { image } } } };
    }
  }
}

const point = ({ latitude, longitude }: Point) => ({ latitude, longitude });
const corner = (at: Point) => ({ geo_point: point(at) });

/** Returns the clauses in a URL. If one is unreadable, it returns none, because the others alone would find too much. */
export function parse(q: string | null): Clause[] {
  const all = q ? readAll(q) : [];
  return all?.flat() ?? [];
}

/** Reports whether all clauses of a URL are readable. */
export function isReadable(q: string | null): boolean {
  return !q || readAll(q) !== undefined;
}

/** Returns the clauses of each element of a query; undefined if the text is not a query, or if an element is unknown to these pages. */
function readAll(q: string): Clause[][] | undefined {
  try {
    const parsed: unknown = JSON.parse(q);
    const ands = Array.isArray(parsed) ? parsed : object(parsed).ands;
    const all = Array.isArray(ands) ? ands.map(read) : undefined;
    return all?.every((found) => found.length) ? all : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the clauses of one element of the API's query: one clause for each of its conditions. */
function read(item: unknown): Clause[] {
  const { input, output, negate } = object(item);
  const found = [...ofInput(object(input)), ...ofOutput(object(output))];
  if (!negate) return found;
  // "Not both" differs from "neither", so an element with several conditions cannot be negated by negating each of them.
  return found.length === 1 ? found.map((c) => ({ ...c, negate: true })) : [];
}

function ofInput(input: Json): Clause[] {
  const data = object(input.data);
  const image = object(data.image);
  return [
    ...(text(input.id) ? [{ kind: 'input', id: text(input.id) } as const] : []),
    ...concepts('labelled', data),
    ...(size(data.metadata) ? [{ kind: 'metadata', json: data.metadata } as const] : []),
    ...(text(image.url) ? [{ kind: 'url', url: text(image.url) } as const] : []),
    ...places(object(data.geo)),
  ];
}

function ofOutput(output: Json): Clause[] {
  const input = object(output.input);
  const image = object(object(input.data).image);
  const [id, url, dropped, base64] = [input.id, image.url, image.dropped, image.base64].map(text);
  const similar: Clause = {
    kind: 'similar',
    ...(id && { id }),
    ...(url && { url }),
    ...(dropped && { dropped }),
    ...(base64 && { base64 }),
    ...(isCrop(image.crop) && { crop: image.crop }),
  };
  return [...concepts('predicted', object(output.data)), ...(id || url || dropped || base64 ? [similar] : [])];
}

const isCrop = (v: unknown): v is Crop =>
  Array.isArray(v) && v.length === 4 && v.every((edge) => typeof edge === 'number');

function concepts(kind: 'predicted' | 'labelled', data: Json): Clause[] {
  return list(data.concepts)
    .map(object)
    .flatMap((c) => {
      const [id, name] = [text(c.id), text(c.name)];
      if (!id && !name) return [];
      const present = c.value !== false && c.value !== 0;
      return [{ kind, ...(id && { id }), name, present } as const];
    });
}

function places(geo: Json): Clause[] {
  const found: Clause[] = [];
  const corners = list(geo.geo_box).map(place);
  const [a, b] = corners;
  if (corners.length === 2 && a && b) found.push({ kind: 'box', corners: [a, b] });
  const at = place(geo);
  const limit = object(geo.geo_limit);
  const unit = units.find((u) => types[u] === limit.type);
  if (at && unit && typeof limit.value === 'number' && limit.value >= 0) {
    found.push({ kind: 'within', ...at, radius: limit.value, unit });
  }
  return found;
}

function place(value: unknown): Point | undefined {
  const all = object(value);
  return pointOf(all.geo_point ? object(all.geo_point) : all);
}

/** Returns the place at a latitude and a longitude; undefined if the values are not those of a place. */
export function pointOf({ latitude, longitude }: { latitude?: unknown; longitude?: unknown }): Point | undefined {
  if (typeof latitude !== 'number' || typeof longitude !== 'number') return undefined;
  return Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180 ? { latitude, longitude } : undefined;
}

const object = (v: unknown): Json => (typeof v === 'object' && v !== null && !Array.isArray(v) ? { ...v } : {});
const list = (v: unknown): unknown[] => (Array.isArray(v) ? v : []);
const text = (v: unknown): string => (typeof v === 'string' ? v : '');
const size = (v: unknown): boolean => typeof v === 'object' && v !== null && Object.keys(v).length > 0;
