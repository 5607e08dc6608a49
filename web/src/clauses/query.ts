// Clauses as the interface has them, there and back: POST /v2/searches takes {"ands": […]}, and the address of a page
// holds the same array.
import { pathIn } from '../routes';
import type { Clause, Crop, Point, Unit } from './clause';
import { pictureOf } from './pictures';

type Json = Readonly<Record<string, unknown>>;

const types: Record<Unit, string> = {
  km: 'withinKilometers',
  mi: 'withinMiles',
  deg: 'withinDegrees',
  rad: 'withinRadians',
};

/**
 * The query of a search. A picture that was dropped here goes with its bytes, which `ready` of pictures.ts has to
 * have read before; one that is not on this device any more is left to its name, which the search refuses.
 */
export function toQuery(clauses: readonly Clause[]): { ands: object[] } {
  return { ands: clauses.map((c) => shape(c, (name) => ({ base64: pictureOf(name) ?? name }))) };
}

/** Clauses as an address and a saved search have them: a dropped picture by its name. */
export function queryText(clauses: readonly Clause[]): string {
  return JSON.stringify(clauses.map((c) => shape(c, (dropped) => ({ dropped }))));
}

/** The path of a page that shows what clauses find. */
export function address(app: string, page: 'inputs' | 'search', clauses: readonly Clause[]): string {
  const path = pathIn(app, page);
  return clauses.length ? `${path}?q=${encodeURIComponent(queryText(clauses))}` : path;
}

function shape(c: Clause, dropped: (name: string) => Json): Json {
  return { ...positive(c, dropped), ...(c.negate && { negate: true }) };
}

function positive(c: Clause, dropped: (name: string) => Json): Json {
  switch (c.kind) {
    case 'predicted':
    case 'labelled': {
      const concept = { ...(c.id && { id: c.id }), ...(c.name && { name: c.name }), value: c.present };
      return { [c.kind === 'labelled' ? 'input' : 'output']: { data: { concepts: [concept] } } };
    }
    case 'metadata':
      return { input: { data: { metadata: c.json } } };
    case 'within': {
      const geo_limit = { type: types[c.unit], value: c.radius };
      return { input: { data: { geo: { geo_point: point(c), geo_limit } } } };
    }
    case 'box':
      return { input: { data: { geo: { geo_box: c.corners.map((at) => ({ geo_point: point(at) })) } } } };
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

/** The clauses in an address: none if one of them cannot be read, because the others would find more than was asked for. */
export function parse(q: string | null): Clause[] {
  const all = q ? readAll(q) : [];
  return all?.flat() ?? [];
}

/** Whether all clauses of an address can be read. */
export function isReadable(q: string | null): boolean {
  return !q || readAll(q) !== undefined;
}

/** The clauses for each element of a query; undefined if it is not a query, or one of them has no meaning here. */
function readAll(q: string): Clause[][] | undefined {
  try {
    const said: unknown = JSON.parse(q);
    const ands = Array.isArray(said) ? said : object(said).ands;
    const all = Array.isArray(ands) ? ands.map(read) : undefined;
    return all?.every((found) => found.length) ? all : undefined;
  } catch {
    return undefined;
  }
}

/** The clauses for one of the interface's: each of its conditions is one of ours. */
function read(said: unknown): Clause[] {
  const { input, output, negate } = object(said);
  const found = [...ofInput(object(input)), ...ofOutput(object(output))];
  if (!negate) return found;
  // Not both is not the same as neither, so that only one condition can be turned round alone.
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
  const crop = list(image.crop);
  const whole = crop.length === 4 && crop.every((edge) => typeof edge === 'number');
  const similar: Clause = {
    kind: 'similar',
    ...(id && { id }),
    ...(url && { url }),
    ...(dropped && { dropped }),
    ...(base64 && { base64 }),
    ...(whole && { crop: crop as unknown as Crop }),
  };
  return [...concepts('predicted', object(output.data)), ...(id || url || dropped || base64 ? [similar] : [])];
}

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
  const unit = (Object.keys(types) as Unit[]).find((u) => types[u] === limit.type);
  if (at && unit && typeof limit.value === 'number' && limit.value >= 0) {
    found.push({ kind: 'within', ...at, radius: limit.value, unit });
  }
  return found;
}

function place(said: unknown): Point | undefined {
  const all = object(said);
  const { latitude, longitude } = all.geo_point ? object(all.geo_point) : all;
  return isPoint(latitude, longitude) ? ({ latitude, longitude } as Point) : undefined;
}

/** Whether two numbers are a place. */
export function isPoint(latitude: unknown, longitude: unknown): boolean {
  return (
    typeof latitude === 'number' &&
    typeof longitude === 'number' &&
    Math.abs(latitude) <= 90 &&
    Math.abs(longitude) <= 180
  );
}

const object = (v: unknown): Json => (typeof v === 'object' && v !== null && !Array.isArray(v) ? (v as Json) : {});
const list = (v: unknown): unknown[] => (Array.isArray(v) ? v : []);
const text = (v: unknown): string => (typeof v === 'string' ? v : '');
const size = (v: unknown): boolean => typeof v === 'object' && v !== null && Object.keys(v).length > 0;
