// Cuts geometry of the sphere at the antimeridian for a flat map. A country on both sides of 180° becomes two parts. Lines are cut
// separately from areas, so no border is drawn along the cut.
import { geoEquirectangular, geoStream } from 'd3-geo';
import type { Feature, MultiLineString, MultiPolygon, Polygon } from 'geojson';

type Ring = [x: number, y: number][];

// Projects longitude to x and latitude to −y. d3 cuts the geometry and adds no points.
const plane = geoEquirectangular()
  .scale(180 / Math.PI)
  .translate([0, 0])
  .precision(0);

/** Returns the rings or lines of a geometry after the cut. closed: the results are rings, and each repeats its first point at the end. */
function stream(geometry: MultiLineString | Polygon, closed: boolean): Ring[] {
  const all: Ring[] = [];
  let part: Ring = [];
  const sink = {
    point: (x: number, y: number) => void part.push([x, -y]),
    lineStart: () => {
      part = [];
    },
    lineEnd: () => {
      if (closed && part[0]) part.push(part[0]);
      if (part.length > 1) all.push(part);
    },
    polygonStart: () => {},
    polygonEnd: () => {},
    sphere: () => {},
  };
  geoStream(geometry, plane.stream(sink));
  return all;
}

/** Returns twice the area of a ring on the plane. It is negative for clockwise rings: the outer rings of polygons on a sphere. */
function area(ring: Ring): number {
  let sum = 0;
  ring.forEach(([x, y], i) => {
    const [nextX, nextY] = ring[(i + 1) % ring.length] ?? [x, y];
    sum += x * nextY - nextX * y;
  });
  return sum;
}

function inside([x, y]: Ring[number], ring: Ring): boolean {
  let odd = false;
  ring.forEach(([ax, ay], i) => {
    const [bx, by] = ring[(i + 1) % ring.length] ?? [ax, ay];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) odd = !odd;
  });
  return odd;
}

function polygons(polygon: Polygon): Ring[][] {
  const rings = stream(polygon, true);
  const found = rings.filter((ring) => area(ring) < 0).map((ring) => [ring]);
  for (const hole of rings.filter((ring) => area(ring) > 0)) {
    const around = found.find(([outer]) => outer && hole[0] && inside(hole[0], outer));
    around?.push(hole);
  }
  return found;
}

/** Returns a country cut at the antimeridian. */
export function cutCountry(one: Feature<Polygon | MultiPolygon>): Feature<MultiPolygon> {
  const { geometry } = one;
  const parts = geometry.type === 'Polygon' ? [geometry.coordinates] : geometry.coordinates;
  const coordinates = parts.flatMap((rings) => polygons({ type: 'Polygon', coordinates: rings }));
  return { ...one, geometry: { type: 'MultiPolygon', coordinates } };
}

/** Returns lines cut at the antimeridian. */
export function cutLines(lines: MultiLineString): MultiLineString {
  return { type: 'MultiLineString', coordinates: stream(lines, false) };
}
