// Computes the lines of shapes on the Earth, and their changes by handles.
import { type Box, distance, edges, fromKilometres, inKilometres, type Point, type Within } from '../../clauses/clause';
import type { Area, Spot } from './base';
import { within } from './base';

export type Shape = Within | Box;

const rad = Math.PI / 180;
const earth = 6371.0088; // km

/** Returns the place at a distance (km) from another one. direction: degrees clockwise from north. */
export function away(from: Point, km: number, direction: number): Point {
  const angle = km / earth;
  const [p, d] = [from.latitude * rad, direction * rad];
  const sine = Math.sin(p) * Math.cos(angle) + Math.cos(p) * Math.sin(angle) * Math.cos(d);
  const latitude = Math.asin(Math.max(-1, Math.min(1, sine)));
  const turned = Math.atan2(Math.sin(d) * Math.sin(angle) * Math.cos(p), Math.cos(angle) - Math.sin(p) * sine);
  return { latitude: latitude / rad, longitude: within(from.longitude + turned / rad) };
}

/** Returns the closed line around a shape. Its points are close enough together to look curved on a globe. */
export function outline(shape: Shape): Point[] {
  if (shape.kind === 'within') {
    const km = inKilometres(shape.radius, shape.unit);
    return Array.from({ length: 97 }, (_, i) => away(shape, km, i * 3.75));
  }
  const { south, west, north, east } = edges(shape);
  const steps = Math.max(2, Math.ceil((east - west) / 3));
  const along = Array.from({ length: steps + 1 }, (_, i) => west + ((east - west) * i) / steps);
  const up = [0, 0.25, 0.5, 0.75, 1].map((part) => south + (north - south) * part);
  return [
    ...along.map((longitude) => ({ latitude: south, longitude })),
    ...up.map((latitude) => ({ latitude, longitude: east })),
    ...along.toReversed().map((longitude) => ({ latitude: north, longitude })),
    ...up.toReversed().map((latitude) => ({ latitude, longitude: west })),
  ];
}

/** Returns a line as an SVG path. It omits the part behind the globe, and starts a new line after a jump across the pane. */
export function line(spots: readonly Spot[], width: number): string {
  let path = '';
  let before: Spot | undefined;
  for (const spot of spots) {
    if (!spot.visible || !Number.isFinite(spot.x + spot.y)) continue;
    const jump = before && Math.abs(before.x - spot.x) > width * 2;
    path += `${before && !jump ? 'L' : 'M'}${spot.x.toFixed(1)},${spot.y.toFixed(1)}`;
    before = spot;
  }
  return path;
}

/** Returns the smallest area that contains a shape. */
export function areaOf(shape: Shape): Area {
  if (shape.kind === 'box') {
    const { south, west, north, east } = edges(shape);
    return [south, west, north, east];
  }
  const km = inKilometres(shape.radius, shape.unit);
  const [north, south] = [away(shape, km, 0).latitude, away(shape, km, 180).latitude];
  const wide = Math.min(179, km / (earth * rad * Math.max(0.05, Math.cos(shape.latitude * rad))));
  return [
    Math.min(south, north),
    within(shape.longitude - wide),
    Math.max(south, north),
    within(shape.longitude + wide),
  ];
}

/** Returns the smallest area that contains places; undefined if there are none. */
export function around(places: readonly Point[]): Area | undefined {
  const latitudes = places.map((p) => p.latitude);
  const longitudes = places.map((p) => p.longitude).sort((a, b) => a - b);
  let [west, east] = [longitudes[0], longitudes.at(-1)];
  if (west === undefined || east === undefined) return undefined;
  // The area leaves out the largest gap between neighbouring longitudes.
  let gap = 360 - (east - west);
  longitudes.forEach((longitude, i) => {
    const next = longitudes[i + 1];
    if (next !== undefined && next - longitude > gap) [gap, west, east] = [next - longitude, next, longitude];
  });
  return [Math.min(...latitudes), west, Math.max(...latitudes), east];
}

/** Rounds a place to four decimals, since nobody points more precisely by hand. */
export function roundPoint({ latitude, longitude }: Point): Point {
  const cut = (n: number) => Math.round(n * 1e4) / 1e4;
  return { latitude: cut(latitude), longitude: cut(longitude) };
}

/** Returns the handles of a shape: the centre and the edge of a circle, or two opposite corners of a box. */
export function handles(shape: Shape): [Point, Point] {
  if (shape.kind === 'within') return [shape, away(shape, inKilometres(shape.radius, shape.unit), 90)];
  return [...shape.corners];
}

/** Returns the shape after a move of one of its handles to a place. */
export function moveHandle(shape: Shape, handle: 0 | 1, to: Point): Shape {
  const at = roundPoint(to);
  if (shape.kind === 'within') {
    if (handle === 0) return { ...shape, ...at };
    return { ...shape, radius: fromKilometres(distance(shape, to), shape.unit) };
  }
  const [a, b] = shape.corners;
  return { ...shape, corners: handle === 0 ? [at, b] : [a, at] };
}

/** Returns the centre of a shape. */
export function middle(shape: Shape): Point {
  if (shape.kind === 'within') return shape;
  const { south, west, north, east } = edges(shape);
  return { latitude: (south + north) / 2, longitude: (west + east) / 2 };
}

/** Converts a shape into the other kind: a circle into the box around it, and a box into the circle that touches its north and south. */
export function asOther(shape: Shape): Shape {
  const negate = shape.negate ? { negate: true } : {};
  if (shape.kind === 'within') {
    const [south, west, north, east] = areaOf(shape);
    const corner = (latitude: number, longitude: number) => roundPoint({ latitude, longitude });
    // A box must not cross 180°, so it is cut there.
    const [left, right] = west <= east ? [west, east] : shape.longitude > 0 ? [west, 180] : [-180, east];
    return { kind: 'box', corners: [corner(north, right), corner(south, left)], ...negate };
  }
  const { south, north } = edges(shape);
  const centre = roundPoint(middle(shape));
  const km =
    distance({ latitude: south, longitude: centre.longitude }, { latitude: north, longitude: centre.longitude }) / 2;
  return { kind: 'within', ...centre, radius: fromKilometres(km, 'km'), unit: 'km', ...negate };
}
