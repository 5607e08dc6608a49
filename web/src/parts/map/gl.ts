// Draws the Earth by MapLibre GL, as a globe at low zoom and flat at high zoom. It loads nothing from other sites: the outline and the
// worker are files of this build, and the style has no fonts, pictures or tiles. The content security policy of the pages requires this.
import type { FeatureCollection, GeoJSON } from 'geojson';
import { type GeoJSONSource, Map as GL, type StyleSpecification, setWorkerUrl } from 'maplibre-gl';
import 'maplibre-gl/dist/maplibre-gl.css';
import worker from 'maplibre-gl/dist/maplibre-gl-worker.mjs?worker&url';
import { distance, type Point } from '../../clauses/clause';
import type { Base, Colour, Making, View } from './base';
import { flatFrom, near, showing, within } from './base';
import { cutCountry, cutLines } from './cut';
import { graticule, type World, world } from './world';

/** Reports whether this browser has WebGL 2. */
export function able(): boolean {
  try {
    const context = document.createElement('canvas').getContext('webgl2');
    context?.getExtension('WEBGL_lose_context')?.loseContext();
    return context !== null;
  } catch {
    return false;
  }
}

export async function make({ pane, label, start, colour, onmove }: Making): Promise<Base> {
  setWorkerUrl(worker);
  const coarse = await world('coarse');
  const map = new GL({
    container: pane,
    style: style(coarse, colour),
    center: [start.centre.longitude, start.centre.latitude],
    zoom: start.zoom,
    minZoom: 0.5,
    maxZoom: 12,
    attributionControl: false,
    dragRotate: false,
    pitchWithRotate: false,
    touchPitch: false,
    fadeDuration: 0,
    refreshExpiredTiles: false,
    locale: { 'Map.Title': label },
  });
  map.touchZoomRotate.disableRotation();
  map.keyboard.disableRotation();
  map.on('move', () => onmove(false));
  map.on('moveend', () => onmove(true));
  map.on('resize', () => onmove(true));
  const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)');

  let fine = false;
  const refine = async () => {
    if (fine || map.getZoom() < 2.5) return;
    fine = true;
    try {
      const better = await world('fine');
      for (const [name, data] of Object.entries(sources(better))) map.getSource<GeoJSONSource>(name)?.setData(data);
    } catch {
      fine = false; // the coarse outline stays until the next move
    }
  };
  map.on('moveend', () => void refine());
  // If the worker or the context fails, this throws, and the caller draws by SVG.
  await new Promise<void>((resolve, reject) => {
    map.once('load', () => resolve());
    map.once('error', ({ error }) => reject(error));
  }).catch((error: unknown) => {
    map.remove();
    throw error;
  });
  void refine();

  const project = ({ latitude, longitude }: Point) => {
    const { x, y } = map.project([near(longitude, map.getCenter().lng), latitude]);
    return { x, y };
  };
  return {
    spot(at) {
      const spot = project(at);
      if (map.getZoom() >= flatFrom) return { ...spot, visible: true };
      // MapLibre projects a point behind the globe to the spot of the point in front of it.
      const { lat, lng } = map.unproject([spot.x, spot.y]);
      return { ...spot, visible: distance(at, { latitude: lat, longitude: lng }) < 1 + 2000 / 2 ** map.getZoom() };
    },
    place(x, y) {
      const { lat, lng } = map.unproject([x, y]);
      const at = { latitude: Math.max(-90, Math.min(90, lat)), longitude: within(lng) };
      const back = project(at);
      return Math.hypot(back.x - x, back.y - y) < 2 ? at : undefined; // undefined: outside the globe
    },
    view: () => viewOf(map),
    go(to) {
      const { clientWidth, clientHeight } = pane;
      const { centre, zoom } = to.box ? showing(to.box, clientWidth, clientHeight) : to;
      map.easeTo({
        ...(centre && { center: [centre.longitude, centre.latitude] }),
        ...(zoom !== undefined && { zoom }),
        duration: reducedMotion.matches ? 0 : 180,
      });
    },
    drag(moves) {
      if (moves) map.dragPan.enable();
      else map.dragPan.disable();
      if (moves) map.boxZoom.enable();
      else map.boxZoom.disable();
    },
    applyColours() {
      for (const [layer, property, name] of painted) map.setPaintProperty(layer, property, colour(name));
    },
    close: () => map.remove(),
  };
}

function viewOf(map: GL): View {
  const { lat, lng } = map.getCenter();
  const bounds = map.getBounds();
  const wide = bounds.getEast() - bounds.getWest() >= 360;
  return {
    zoom: map.getZoom(),
    centre: { latitude: lat, longitude: within(lng) },
    box: [
      Math.max(-90, bounds.getSouth()),
      wide ? -180 : within(bounds.getWest()),
      Math.min(90, bounds.getNorth()),
      wide ? 180 : within(bounds.getEast()),
    ],
  };
}

const painted: [string, 'background-color' | 'fill-color' | 'line-color', Colour][] = [
  ['sea', 'background-color', 'sea'],
  ['land', 'fill-color', 'land'],
  ['graticule', 'line-color', 'coast'],
  ['border', 'line-color', 'border'],
  ['coast', 'line-color', 'coast'],
];

function sources({ land, coast, border }: World): Record<string, FeatureCollection | GeoJSON> {
  return {
    land: { ...land, features: land.features.map(cutCountry) },
    coast: cutLines(coast),
    border: cutLines(border),
  };
}

function style(first: World, colour: (name: Colour) => string): StyleSpecification {
  const data = { ...sources(first), graticule };
  const line = (id: string, name: Colour, width: number, opacity = 1) => ({
    id,
    type: 'line' as const,
    source: id,
    paint: { 'line-color': colour(name), 'line-width': width, 'line-opacity': opacity },
  });
  return {
    version: 8,
    projection: {
      type: ['interpolate', ['linear'], ['zoom'], flatFrom - 0.5, 'vertical-perspective', flatFrom, 'mercator'],
    },
    sources: Object.fromEntries(
      Object.entries(data).map(([name, one]) => [name, { type: 'geojson' as const, data: one, tolerance: 0.2 }]),
    ),
    layers: [
      { id: 'sea', type: 'background', paint: { 'background-color': colour('sea') } },
      { id: 'land', type: 'fill', source: 'land', paint: { 'fill-color': colour('land') } },
      line('graticule', 'coast', 0.6, 0.25),
      line('border', 'border', 0.7),
      line('coast', 'coast', 0.8),
    ],
  };
}
