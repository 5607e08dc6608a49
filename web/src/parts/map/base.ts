// Draws the Earth under pins and shapes: MapLibre if the browser has WebGL, otherwise lines of SVG. The elements on them need not know
// which.
import type { Point } from '../../clauses/clause';

/** A part of the Earth: south, west, north, east, in degrees; west is more than east across the antimeridian. */
export type Area = readonly [number, number, number, number];

export interface View {
  readonly zoom: number; // 0: the world is 512 px wide; each step doubles it
  readonly centre: Point;
  readonly box: Area;
}

/** A place on the pane, in px from its left top. visible: it is on this side of the globe. */
export interface Spot {
  readonly x: number;
  readonly y: number;
  readonly visible: boolean;
}

export interface Base {
  spot(at: Point): Spot;
  /** The place under a spot, or undefined where there is no Earth. */
  place(x: number, y: number): Point | undefined;
  view(): View;
  /** Moves there; a box is shown whole. */
  go(to: { centre?: Point; zoom?: number; box?: Area }): void;
  /** Whether dragging moves the map. */
  drag(moves: boolean): void;
  /** Takes the colours of the page again. */
  dress(): void;
  close(): void;
}

export interface Making {
  readonly pane: HTMLElement;
  readonly label: string;
  readonly start: { readonly centre: Point; readonly zoom: number };
  readonly colour: (name: Colour) => string;
  readonly onmove: (still: boolean) => void; // the view is another; still: it has come to rest
}

export type Colour = 'sea' | 'land' | 'coast' | 'border';

/** Below, the Earth is a globe; from there on it is flat. */
export const flatFrom = 4;

/** The same longitude, by whole turns as near to another as can be. */
export function near(longitude: number, to: number): number {
  return longitude + 360 * Math.round((to - longitude) / 360);
}

/** A longitude within ±180. */
export function within(longitude: number): number {
  return longitude - 360 * Math.round(longitude / 360);
}

/** The zoom at which the globe fills a pane of a size in px, as seen from a latitude; a small pane shows a part of it. */
export function far(latitude: number, width: number, height: number): number {
  const across = 0.85 * Math.min(width, height) * Math.cos((latitude * Math.PI) / 180);
  return Math.max(1, Math.log2((across * Math.PI) / 512));
}

/** Where a view that shows a whole area stands, on a pane of a size in px. */
export function showing(
  [south, west, north, east]: Area,
  width: number,
  height: number,
): { centre: Point; zoom: number } {
  const wide = east >= west ? east - west : east - west + 360;
  const y = (latitude: number) => {
    const rad = (Math.max(-85, Math.min(85, latitude)) * Math.PI) / 180;
    return Math.log(Math.tan(Math.PI / 4 + rad / 2));
  };
  const high = y(north) - y(south);
  const margin = 0.7; // of the pane
  const across = wide > 0 ? Math.log2((width * margin * 360) / (512 * wide)) : 9;
  const down = high > 0 ? Math.log2((height * margin * 2 * Math.PI) / (512 * high)) : 9;
  const middle = (Math.atan(Math.sinh((y(north) + y(south)) / 2)) * 180) / Math.PI;
  return {
    centre: { latitude: middle, longitude: within(west + wide / 2) },
    zoom: Math.max(0.6, Math.min(9, across, down)),
  };
}
