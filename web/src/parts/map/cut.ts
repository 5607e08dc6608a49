// Geometry of the sphere cut at the antimeridian, for a plane: a country on both sides of 180° becomes two parts. On a sphere no line ends
// there, so none is drawn along the cut.
import { geoEquirectangular, geoStream } from 'd3-geo';
import type { Feature, MultiLineString, MultiPolygon, Polygon, Position } from 'geojson';

type Ring = Position[];

// Longitude and latitude as x and −y, after d3's cutting; without additional points.
const plane = geoEquirectangular()
  .scale(180 / Math.PI)
  .translate([0, 0])
  .precision(0);

/** The rings or lines that a geometry comes to. closed: rings, whose last point is the first again. */
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

/** Twice a ring's area on the plane; negative clockwise, as the outer rings of a sphere's polygons run. */
function area(ring: Ring): number {
  let sum = 0;
  ring.forEach(([x, y], i) => {
    const [nextX, nextY] = ring[(i + 1) % ring.length] as [number, number];
    sum += (x as number) * nextY - nextX * (y as number);
  });
  return sum;
}

function inside([x, y]: Position, ring: Ring): boolean {
  let odd = false;
  ring.forEach(([ax, ay], i) => {
    const [bx, by] = ring[(i + 1) % ring.length] as [number, number];
    const [px, py] = [x as number, y as number];
    if (
      (ay as number) > py !== by > py &&
      px < ((bx - (ax as number)) * (py - (ay as number))) / (by - (ay as number)) + (ax as number)
    )
      odd = !odd;
  });
  return odd;
}

function polygons(polygon: Polygon): Position[][][] {
  const rings = stream(polygon, true);
  const found = rings.filter((ring) => area(ring) < 0).map((ring) => [ring]);
  for (const hole of rings.filter((ring) => area(ring) > 0)) {
    const around = found.find(([outer]) => inside(hole[0] as Position, outer as Ring));
    around?.push(hole);
  }
  return found;
}

/** A country, cut. */
export function cutCountry(one: Feature<Polygon | MultiPolygon>): Feature<MultiPolygon> {
  const { geometry } = one;
  const parts = geometry.type === 'Polygon' ? [geometry.coordinates] : geometry.coordinates;
  const coordinates = parts.flatMap((rings) => polygons({ type: 'Polygon', coordinates: rings }));
  return { ...one, geometry: { type: 'MultiPolygon', coordinates } };
}

/** Lines, cut. */
export function cutLines(lines: MultiLineString): MultiLineString {
  return { type: 'MultiLineString', coordinates: stream(lines, false) };
}
