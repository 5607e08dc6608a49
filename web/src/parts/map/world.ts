// Loads the outline of the world from files of this build: Natural Earth by world-atlas, on the sphere and without a cut at 180°.
// The coarse outline is small and drawn first. The fine one is loaded when the view is close.
import { geoArea, geoCentroid, geoGraticule10 } from 'd3-geo';
import type { Feature, FeatureCollection, MultiLineString, MultiPolygon, Polygon } from 'geojson';
import { feature, mesh } from 'topojson-client';
import type { GeometryCollection, Topology } from 'topojson-specification';
import fine from 'world-atlas/countries-50m.json?url';
import coarse from 'world-atlas/countries-110m.json?url';

export interface World {
  readonly land: FeatureCollection<Polygon | MultiPolygon>; // one feature per country
  readonly coast: MultiLineString;
  readonly border: MultiLineString;
}

export interface Country {
  readonly digits: string; // its number in ISO 3166-1
  readonly latitude: number; // latitude of the centre of its largest part
  readonly longitude: number;
  readonly area: number; // area of its largest part, in steradians
}

const read = new Map<string, Promise<World>>();

/** Loads the outline, once for each resolution: coarse enough for a globe, or fine enough for a country. */
export function world(detail: 'coarse' | 'fine'): Promise<World> {
  const address = detail === 'coarse' ? coarse : fine;
  let one = read.get(address);
  if (!one) {
    one = load(address);
    one.catch(() => read.delete(address)); // the next call loads it again
    read.set(address, one);
  }
  return one;
}

async function load(address: string): Promise<World> {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${answer.status} ${address}`);
  const topology: Topology<{ countries: GeometryCollection }> = await answer.json();
  const { countries } = topology.objects;
  return {
    land: feature(topology, countries) as FeatureCollection<Polygon | MultiPolygon>, // the file has only polygons
    coast: mesh(topology, countries, (a, b) => a === b),
    border: mesh(topology, countries, (a, b) => a !== b),
  };
}

/** The lines of latitude and longitude at every ten degrees. */
export const graticule: MultiLineString = geoGraticule10();

/** Returns the places for the names of countries, the largest country first. */
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
