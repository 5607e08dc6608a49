// The outline of the world, from our own build: Natural Earth by world-atlas, on the sphere, with no seam.
// The coarse one is small and drawn first; the fine one is read when something is near.
import { geoArea, geoCentroid, geoGraticule10 } from 'd3-geo';
import type { Feature, FeatureCollection, MultiLineString, MultiPolygon, Polygon } from 'geojson';
import { feature, mesh } from 'topojson-client';
import type { GeometryCollection, Topology } from 'topojson-specification';
import fine from 'world-atlas/countries-50m.json?url';
import coarse from 'world-atlas/countries-110m.json?url';

export interface World {
  readonly land: FeatureCollection<Polygon | MultiPolygon>; // a feature a country
  readonly coast: MultiLineString;
  readonly border: MultiLineString;
}

export interface Country {
  readonly digits: string; // its number in ISO 3166-1
  readonly latitude: number; // of its largest part's middle
  readonly longitude: number;
  readonly area: number; // of its largest part, in steradians
}

const read = new Map<string, Promise<World>>();

/** The outline: coarse as of a globe, or fine as of a country. */
export function world(how: 'coarse' | 'fine'): Promise<World> {
  const address = how === 'coarse' ? coarse : fine;
  let one = read.get(address);
  if (!one) {
    one = load(address);
    one.catch(() => read.delete(address)); // asked for again
    read.set(address, one);
  }
  return one;
}

async function load(address: string): Promise<World> {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${answer.status} ${address}`);
  const topology = (await answer.json()) as Topology<{ countries: GeometryCollection }>;
  const { countries } = topology.objects;
  return {
    land: feature(topology, countries) as FeatureCollection<Polygon | MultiPolygon>,
    coast: mesh(topology, countries, (a, b) => a === b),
    border: mesh(topology, countries, (a, b) => a !== b),
  };
}

/** Lines of latitude and longitude, each ten degrees. */
export const graticule: MultiLineString = geoGraticule10();

/** Where the names of countries stand, the largest first. */
export function countries({ land }: World): Country[] {
  return land.features
    .flatMap((one) => {
      if (!one.id) return [];
      const [part] = largest(one);
      const [longitude, latitude] = geoCentroid(part);
      return [{ digits: String(one.id), latitude, longitude, area: geoArea(part) }];
    })
    .sort((a, b) => b.area - a.area);
}

function largest({ geometry }: Feature<Polygon | MultiPolygon>): [Polygon] {
  const parts = geometry.type === 'Polygon' ? [geometry.coordinates] : geometry.coordinates;
  const all = parts.map((coordinates): Polygon => ({ type: 'Polygon', coordinates }));
  return [all.reduce((a, b) => (geoArea(b) > geoArea(a) ? b : a))];
}
