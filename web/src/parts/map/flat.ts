// Draws the Earth without WebGL, as SVG by d3-geo, with the outline that gl.ts uses. Dragging, zooming and turning work the same.
import { type GeoProjection, geoDistance, geoMercator, geoOrthographic, geoPath } from 'd3-geo';
import type { Base, Making, View } from './base';
import { flatFrom, showing, within } from './base';
import { graticule, type World, world } from './world';

const svg = 'http://www.w3.org/2000/svg';
const layers = ['sea', 'land', 'gr', 'bd', 'coast'] as const;

export async function make({ pane, label, start, onmove }: Making): Promise<Base> {
  let drawn: World = await world('coarse');
  const root = document.createElementNS(svg, 'svg');
  root.setAttribute('class', 'flat');
  root.setAttribute('tabindex', '0');
  root.setAttribute('role', 'region');
  root.setAttribute('aria-label', label);
  const paths = layers.map((name) => {
    const path = root.appendChild(document.createElementNS(svg, 'path'));
    path.setAttribute('class', name);
    return path;
  });
  pane.append(root);

  let { centre, zoom } = start;
  let projection: GeoProjection = geoMercator();
  let drags = true;
  let frameRequest = 0;
  let fine = false;

  const size = () => [pane.clientWidth, pane.clientHeight] as const;
  const globe = () => zoom < flatFrom;
  const scale = () => (512 * 2 ** zoom) / (2 * Math.PI);

  function aim() {
    const [width, height] = size();
    projection = globe()
      ? geoOrthographic().rotate([-centre.longitude, -centre.latitude]).clipAngle(90)
      : geoMercator()
          .rotate([-centre.longitude, 0])
          .center([0, centre.latitude])
          .clipExtent([
            [-20, -20],
            [width + 20, height + 20],
          ]);
    projection
      .scale(scale())
      .translate([width / 2, height / 2])
      .precision(globe() ? 0.7 : 0);
  }
  function draw() {
    frameRequest = 0;
    const path = geoPath(projection);
    const things = [{ type: 'Sphere' as const }, drawn.land, graticule, drawn.border, drawn.coast];
    for (const [i, thing] of things.entries()) paths[i]?.setAttribute('d', path(thing) ?? '');
    if (!fine && zoom > 2.5) {
      fine = true;
      world('fine').then(
        (better) => {
          drawn = better;
          turn();
        },
        () => {
          fine = false; // the coarse outline stays
        },
      );
    }
  }
  let rest: ReturnType<typeof setTimeout> | undefined;
  function turn() {
    aim();
    if (!frameRequest) frameRequest = requestAnimationFrame(draw);
    onmove(false);
    clearTimeout(rest);
    rest = setTimeout(() => onmove(true), 120);
  }
  const place: Base['place'] = (x, y) => {
    const found = projection.invert?.([x, y]);
    if (!found?.every(Number.isFinite)) return undefined;
    const back = projection(found);
    if (!back || Math.hypot(back[0] - x, back[1] - y) > 1) return undefined; // outside the globe
    return { latitude: found[1], longitude: within(found[0]) };
  };
  function pan(dx: number, dy: number) {
    const [width, height] = size();
    if (globe()) {
      const turned = 180 / (Math.PI * scale());
      centre = {
        latitude: Math.max(-85, Math.min(85, centre.latitude + dy * turned)),
        longitude: within(centre.longitude - dx * turned),
      };
    } else centre = place(width / 2 - dx, height / 2 - dy) ?? centre;
    turn();
  }
  function closer(delta: number, x?: number, y?: number) {
    const before = x !== undefined && y !== undefined && !globe() ? place(x, y) : undefined;
    zoom = Math.max(0.5, Math.min(12, zoom + delta));
    aim();
    const after = before && projection([before.longitude, before.latitude]);
    if (after && x !== undefined && y !== undefined && !globe()) pan(x - after[0], y - after[1]);
    turn();
  }

  let from: { x: number; y: number } | undefined;
  root.addEventListener('pointerdown', (event) => {
    if (!drags || event.button !== 0) return;
    from = { x: event.clientX, y: event.clientY };
    root.setPointerCapture(event.pointerId);
  });
  root.addEventListener('pointermove', (event) => {
    if (!from) return;
    pan(event.clientX - from.x, event.clientY - from.y);
    from = { x: event.clientX, y: event.clientY };
  });
  for (const name of ['pointerup', 'pointercancel'] as const) {
    root.addEventListener(name, () => {
      from = undefined;
    });
  }
  root.addEventListener(
    'wheel',
    (event) => {
      event.preventDefault();
      const box = pane.getBoundingClientRect();
      closer(-event.deltaY / 300, event.clientX - box.x, event.clientY - box.y);
    },
    { passive: false },
  );
  root.addEventListener('keydown', (event) => {
    const moves: Record<string, [number, number]> = {
      ArrowLeft: [100, 0],
      ArrowRight: [-100, 0],
      ArrowUp: [0, 100],
      ArrowDown: [0, -100],
    };
    const move = moves[event.key];
    if (move) pan(...move);
    else if (event.key === '+' || event.key === '=') closer(1);
    else if (event.key === '-') closer(-1);
    else return;
    event.preventDefault();
  });
  const resized = new ResizeObserver(turn);
  resized.observe(pane);
  aim();
  draw();

  return {
    spot({ latitude, longitude }) {
      const [x, y] = projection([longitude, latitude]) ?? [-1e4, -1e4];
      const hidden = globe() && geoDistance([longitude, latitude], [centre.longitude, centre.latitude]) > Math.PI / 2;
      return { x, y, visible: !hidden };
    },
    place,
    view(): View {
      const [width, height] = size();
      if (globe()) return { zoom, centre, box: [-90, -180, 90, 180] };
      const [a, b] = [place(0, height), place(width, 0)];
      return { zoom, centre, box: [a?.latitude ?? -85, a?.longitude ?? -180, b?.latitude ?? 85, b?.longitude ?? 180] };
    },
    go(to) {
      const [width, height] = size();
      const target = to.box ? showing(to.box, width, height) : to;
      centre = target.centre ?? centre;
      zoom = Math.max(0.5, Math.min(12, target.zoom ?? zoom));
      turn();
    },
    drag(moves) {
      drags = moves;
    },
    applyColours() {}, // CSS of the page sets the colours
    close() {
      resized.disconnect();
      clearTimeout(rest);
      cancelAnimationFrame(frameRequest);
      root.remove();
    },
  };
}
