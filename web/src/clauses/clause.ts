// The clauses of a search. A page shows each clause as one chip. A hit matches all of them.

/** A place on the Earth, in degrees. */
export interface Point {
  readonly latitude: number;
  readonly longitude: number;
}

export const units = ['km', 'mi', 'deg', 'rad'] as const;
export type Unit = (typeof units)[number];

/** Edges of a part of a picture: top, left, bottom, right, each 0 to 1. */
export type Crop = readonly [number, number, number, number];

/** The part that every clause has. negate: the clause finds the inputs that it otherwise excludes. */
interface Negatable {
  readonly negate?: boolean;
}

export type Concept = Negatable & {
  readonly kind: 'predicted' | 'labelled';
  readonly id?: string;
  readonly name: string;
  readonly present: boolean;
};
export type Metadata = Negatable & { readonly kind: 'metadata'; readonly json: unknown };
export type Within = Negatable & Point & { readonly kind: 'within'; readonly radius: number; readonly unit: Unit };
export type Box = Negatable & { readonly kind: 'box'; readonly corners: readonly [Point, Point] };
export type Url = Negatable & { readonly kind: 'url'; readonly url: string };
export type InputId = Negatable & { readonly kind: 'input'; readonly id: string };
/** A picture to compare with: a stored input, a URL, or a dropped picture. `dropped` is the name that pictures.ts gave to it. */
export type Similar = Negatable & {
  readonly kind: 'similar';
  readonly id?: string;
  readonly url?: string;
  readonly dropped?: string;
  readonly base64?: string;
  readonly crop?: Crop;
};

export type Clause = Concept | Metadata | Within | Box | Url | InputId | Similar;
export type Kind = Clause['kind'];

const kilometres = { km: 1, mi: 1.609344, deg: (Math.PI / 180) * 6371.0088, rad: 6371.0088 } as const;

/** Returns a radius in kilometres along the Earth, measured like the search does. */
export function inKilometres(radius: number, unit: Unit): number {
  return radius * kilometres[unit];
}

/** Converts kilometres into another unit. It rounds to 4 digits, since nobody draws more precisely by hand. */
export function fromKilometres(length: number, unit: Unit): number {
  return Number((length / kilometres[unit]).toPrecision(4));
}

/** Returns the distance of two places along the Earth, in kilometres. */
export function distance(a: Point, b: Point): number {
  const rad = Math.PI / 180;
  const [p, q] = [a.latitude * rad, b.latitude * rad];
  const h =
    Math.sin((q - p) / 2) ** 2 + Math.cos(p) * Math.cos(q) * Math.sin(((b.longitude - a.longitude) * rad) / 2) ** 2;
  return 2 * kilometres.rad * Math.asin(Math.min(1, Math.sqrt(h)));
}

/** Reports whether a place matches the shape of a clause, negated or not. As in a search, a box never crosses 180°. */
export function contains(c: Within | Box, at: Point): boolean {
  if (c.kind === 'within') return distance(c, at) <= inKilometres(c.radius, c.unit) !== (c.negate ?? false);
  const { south, west, north, east } = edges(c);
  const inside = at.latitude >= south && at.latitude <= north && at.longitude >= west && at.longitude <= east;
  return inside !== (c.negate ?? false);
}

/** Returns the edges of a box. Its corners may be in any order. */
export function edges(c: Box): { south: number; west: number; north: number; east: number } {
  const [a, b] = c.corners;
  return {
    south: Math.min(a.latitude, b.latitude),
    west: Math.min(a.longitude, b.longitude),
    north: Math.max(a.latitude, b.latitude),
    east: Math.max(a.longitude, b.longitude),
  };
}

/** Reports whether a clause sorts the hits, by probability or by similarity. */
export function ranks(c: Clause): boolean {
  return c.kind === 'similar' || c.kind === 'predicted';
}
