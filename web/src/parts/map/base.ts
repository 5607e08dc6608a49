// The interface of the two modules that draw the Earth below pins and shapes: gl.ts uses MapLibre if the browser has WebGL, and flat.ts
// draws SVG otherwise. Pins and shapes work the same on both.
import type { Point } from '../../clauses/clause';

/** A part of the Earth: south, west, north, east, in degrees. West is greater than east if the part crosses the antimeridian. */
export type Area = readonly [number, number, number, number];

export interface View {
  readonly zoom: number; // 0: the world is 512 px wide; each further step doubles the width
  readonly centre: Point;
  readonly box: Area;
}

/** A place on the pane, in px from its top left. visible: the place is not behind the globe. */
export interface Spot {
  readonly x: number;
  readonly y: number;
  readonly visible: boolean;
}

export interface Base {
  spot(at: Point): Spot;
  /** Returns the place at a spot; undefined if the spot is outside the globe. */
  place(x: number, y: number): Point | undefined;
  view(): View;
  /** Moves the view to a centre, a zoom, or a box. A box becomes completely visible. */
  go(to: { centre?: Point; zoom?: number; box?: Area }): void;
  /** Sets whether dragging moves the map. */
  drag(moves: boolean): void;
  /** Applies the current colours of the page, for example after a change of the theme. */
  applyColours(): void;
  close(): void;
}

export interface Making {
  readonly pane: HTMLElement;
  readonly label: string;
  readonly start: { readonly centre: Point; readonly zoom: number };
  readonly colour: (name: Colour) => string;
  readonly onmove: (isAtRest: boolean) => void; // called when the view changes; isAtRest: it stopped moving
}

export type Colour = 'sea' | 'land' | 'coast' | 'border';

/** The zoom at which the map becomes flat. Below it, the Earth is a globe. */
export const flatFrom = 4;

/** Returns a longitude plus or minus whole turns, so that it is nearest to another one. */
export function near(longitude: number, to: number): number {
  return longitude + 360 * Math.round((to - longitude) / 360);
}

/** Returns a longitude within ±180°. */
export function within(longitude: number): number {
  return longitude - 360 * Math.round(longitude / 360);
}

/** Returns the zoom at which the globe, centred at a latitude, fills a pane (px). The zoom is at least 1, so a small pane shows a part. */
export function far(latitude: number, width: number, height: number): number {
  const across = 0.85 * Math.min(width, height) * Math.cos((latitude * Math.PI) / 180);
  return Math.max(1, Math.log2((across * Math.PI) / 512));
}

/** Returns the view that shows a whole area on a pane (px). */
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
  const margin = 0.7; // share of the pane that the area fills
  const across = wide > 0 ? Math.log2((width * margin * 360) / (512 * wide)) : 9;
  const down = high > 0 ? Math.log2((height * margin * 2 * Math.PI) / (512 * high)) : 9;
  const middle = (Math.atan(Math.sinh((y(north) + y(south)) / 2)) * 180) / Math.PI;
  return {
    centre: { latitude: middle, longitude: within(west + wide / 2) },
    zoom: Math.max(0.6, Math.min(9, across, down)),
  };
}
