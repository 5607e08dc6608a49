// Shapes on the map of a search: the drawn shape is the shape that is searched, with mouse, touch and keyboard, at any speed.
import { geoDistance, geoOrthographic } from 'd3-geo';
import { check, checkEqual, journey, words } from './browser.js';

const m = await words('en');
const moveCounts = [2, 10, 100];
const durations = [0, 300, 2000]; // ms for the whole drag
const speed = (i) => durations[i % durations.length];
const earthRadius = 6371.0088; // km
// Offsets in px from the middle of the map. They are on the globe, and no button of a narrow map covers them.
const start = [-80, -70];
const end = [90, 75];
const away = [40, -60];

await journey(async (arrive) => {
  const mouse = await arrive();
  await denyWebGL(mouse);
  await mouse.page.goto('/');
  await mouse.waitUntil(() => localStorage.getItem('copies'));
  const app = await mouse.page.evaluate(() => JSON.parse(localStorage.getItem('copies'))[0].id);
  await testPointer(mouse, app, 'the mouse', mousePointer(mouse));
  await mouse.step('The arrow keys move a handle of a box', () => changeByKeys(mouse, app));
  await mouse.step('The page searches a typed radius, and Escape restores the previous one', () =>
    typeShape(mouse, app),
  );
  await mouse.context.close();

  const phone = await arrivePhone(arrive);
  await denyWebGL(phone);
  await phone.page.goto('/');
  await phone.waitUntil(() => localStorage.getItem('copies'));
  await testPointer(phone, app, 'a finger', await touchPointer(phone));
  await phone.step('Two fingers draw nothing', () => pinch(phone, app));
  await phone.context.close();

  for (const [device, t] of [
    ['the mouse', await arrive()],
    ['a finger', await arrivePhone(arrive)],
  ]) {
    await t.page.goto('/');
    await t.waitUntil(() => localStorage.getItem('copies'));
    const pointer = device === 'the mouse' ? mousePointer(t) : await touchPointer(t);
    await t.step(`On a map with WebGL, the shape is where ${device} drew it`, () => drawWithWebGL(t, app, pointer));
    await t.context.close();
  }
});

async function arrivePhone(arrive) {
  const t = await arrive({ touch: true });
  await t.page.setViewportSize({ width: 360, height: 740 });
  return t;
}

/** Makes the pages draw their maps as SVG. Its projection is simple, so the steps compute where each place is. */
function denyWebGL(t) {
  return t.context.addInitScript(() => {
    const { getContext } = HTMLCanvasElement.prototype;
    HTMLCanvasElement.prototype.getContext = function (type, ...rest) {
      return type.startsWith('webgl') ? null : getContext.call(this, type, ...rest);
    };
  });
}

async function testPointer(t, app, device, pointer) {
  for (const [n, tool] of ['box', 'circle'].entries()) {
    await t.step(`The page searches the ${tool} that ${device} drew`, async () => {
      for (const [i, moves] of moveCounts.entries()) await drawShape(t, app, tool, pointer, moves, speed(i + n));
    });
    await t.step(`The page searches the ${tool} after ${device} moved its handles`, async () => {
      for (const [i, moves] of moveCounts.entries()) await moveHandles(t, app, tool, pointer, moves, speed(i + n + 1));
    });
  }
  await t.step(`Escape or the system cancels a drag by ${device}`, () => stopDrag(t, app, pointer));
}

function mousePointer(t) {
  return {
    down: async ([x, y]) => {
      await t.page.mouse.move(x, y);
      await t.page.mouse.down();
    },
    move: ([x, y]) => t.page.mouse.move(x, y),
    up: () => t.page.mouse.up(),
    cancel: async () => {
      await t.page.evaluate(() => {
        const event = new PointerEvent('pointercancel', { pointerId: 1, isPrimary: true, bubbles: true });
        (document.querySelector('.handle:active') ?? document.querySelector('.ground')).dispatchEvent(event);
      });
      await t.page.mouse.move(0, 0);
      await t.page.mouse.up();
    },
  };
}

async function touchPointer(t) {
  const screen = await t.context.newCDPSession(t.page);
  const send = (type, ...touchPoints) => screen.send('Input.dispatchTouchEvent', { type, touchPoints });
  const at = ([x, y], id = 0) => ({ x, y, id });
  return {
    down: (...fingers) => send('touchStart', ...fingers.map(at)),
    move: (...fingers) => send('touchMove', ...fingers.map(at)),
    up: () => send('touchEnd'),
    cancel: () => send('touchCancel'),
  };
}

/** Opens an empty map. No picture matches the search, so that the map shows its first view and no pin covers the globe. */
async function openMap(t, app) {
  const ands = JSON.stringify([{ output: { data: { concepts: [{ name: 'no such thing' }] } } }]);
  const visit = (path) =>
    t.page.evaluate((path) => {
      history.pushState(null, '', path);
      dispatchEvent(new PopStateEvent('popstate'));
    }, path);
  await visit(`/${app}/models`);
  await t.waitForRemoval(t.page.locator('.ground'));
  await visit(`/${app}/search?q=${encodeURIComponent(ands)}`);
  await t.waitFor(t.page.getByRole('toolbar', { name: m('search_draw') }));
  await t.waitFor(t.heading(m('search_none')));
  await t.page.locator('.ground').scrollIntoViewIfNeeded();
  await t.page.evaluate(() => {
    if (globalThis.addresses) return;
    for (const name of ['pushState', 'replaceState']) {
      const change = history[name].bind(history);
      history[name] = (state, title, url) => {
        globalThis.addresses.push(url);
        change(state, title, url);
      };
    }
  });
  await forgetAddresses(t);
  return readMap(t);
}

/** Starts to count the addresses of the page. */
function forgetAddresses(t) {
  return t.page.evaluate(() => {
    globalThis.addresses = [];
  });
}

/** Returns the current view of the map: the globe, turned to its first place. */
async function readMap(t) {
  const { x, y, radius, width } = await t.page.evaluate(async () => {
    const frame = () => new Promise(requestAnimationFrame);
    for (let i = 0; i < 3; i++) await frame(); // a map of another size is drawn again in the next frame
    const ground = document.querySelector('.ground').getBoundingClientRect();
    const sea = document.querySelector('.ground .sea')?.getBoundingClientRect(); // not in a map with WebGL
    const radius = (sea?.width ?? 0) / 2;
    return { x: ground.x + ground.width / 2, y: ground.y + ground.height / 2, radius, width: ground.width };
  });
  const projection = geoOrthographic().rotate([-10, -25]).scale(radius).translate([x, y]);
  return {
    width,
    spot: ([dx, dy]) => [x + dx, y + dy],
    invert: (spot) => projection.invert(spot),
    project: ({ latitude, longitude }) => projection([longitude, latitude]),
    pixel: earthRadius / radius, // km
  };
}

/** Takes a tool of the toolbar as a pointer does. */
function takeTool(t, tool) {
  return t
    .button(new RegExp(`^${m(`search_tool_${tool}`)}`), t.page.getByRole('toolbar', { name: m('search_draw') }))
    .click();
}

/** Returns the number of addresses that the page has had, and the shape in the current one. */
function readShape(t) {
  return t.page.evaluate(() => {
    const ands = JSON.parse(new URL(location.href).searchParams.get('q'));
    const geo = ands.map((and) => and.input?.data.geo).find(Boolean);
    const corners = geo?.geo_box?.map((corner) => corner.geo_point);
    return { changes: globalThis.addresses.length, corners, centre: geo?.geo_point, radius: geo?.geo_limit?.value };
  });
}

/** Drags the pointer in a number of moves of equal length. */
async function drag(t, pointer, from, to, moves, duration) {
  await pointer.down(from);
  for (let i = 1; i <= moves; i++) {
    await new Promise((resolve) => setTimeout(resolve, duration / moves));
    await pointer.move(from.map((a, n) => a + ((to[n] - a) * i) / moves));
  }
  checkEqual((await readShape(t)).changes, 0, 'changes of the search before the release');
}

/** Releases the pointer, and returns the shape that is searched then. */
async function release(t, pointer) {
  await pointer.up();
  await t.waitUntil(() => globalThis.addresses.length > 0);
  const shape = await readShape(t);
  checkEqual(shape.changes, 1, 'changes of the search');
  return shape;
}

/** Checks that a place is at a spot of the map. */
function checkSpot(map, place, spot, label) {
  const [x, y] = map.project(place);
  check(Math.hypot(x - spot[0], y - spot[1]) <= 1, `${label}: ${[x, y]}, want ${spot}`);
}

/** Checks that a circle has its centre at a spot and another spot on its edge. */
function checkCircle(map, shape, centre, edge, label) {
  checkSpot(map, shape.centre, centre, `${label}, centre`);
  const want = geoDistance(map.invert(centre), map.invert(edge)) * earthRadius;
  check(Math.abs(shape.radius - want) <= map.pixel, `${label}: a radius of ${shape.radius} km, want ${want}`);
}

async function drawShape(t, app, tool, pointer, moves, duration) {
  const map = await openMap(t, app);
  const label = `${tool}, ${moves} moves in ${duration} ms`;
  await takeTool(t, tool);
  const [from, to] = [start, end].map(map.spot);
  await drag(t, pointer, from, to, moves, duration);
  const shape = await release(t, pointer);
  if (tool === 'circle') return checkCircle(map, shape, from, to, label);
  for (const [i, spot] of [from, to].entries()) checkSpot(map, shape.corners[i], spot, `${label}, corner ${i}`);
}

/** Draws a box and a circle. On a map that did not move, the outline of the searched shape is at the spots of the pointer. */
async function drawWithWebGL(t, app, pointer) {
  for (const tool of ['box', 'circle']) {
    await openMap(t, app);
    // The displayed request becomes longer with the shape. The map would become smaller, and its perspective would change.
    await t.page.locator('.mapside > .request').evaluate((request) => {
      request.style.display = 'none';
    });
    const map = await readMap(t);
    await takeTool(t, tool);
    await drag(t, pointer, map.spot(start), map.spot(end), 10, 300);
    await release(t, pointer);
    const { spot } = await readMap(t); // the filters above the map may have one more line
    for (const at of tool === 'box' ? [start, end] : [end]) {
      const distance = await outlineDistance(t, spot(at));
      check(distance <= 1, `${tool}: the outline is ${distance} px from ${at}`);
    }
  }
}

/** Returns the distance in px between a spot and the outline of the shape on the map. */
function outlineDistance(t, spot) {
  return t.page.locator('path.shape').evaluate((path, [x, y]) => {
    const box = path.ownerSVGElement.getBoundingClientRect();
    const points = [...path.getAttribute('d').matchAll(/(-?[\d.]+),(-?[\d.]+)/g)].map(([, px, py]) => [
      box.x + Number(px) - x,
      box.y + Number(py) - y,
    ]);
    // For each line from one point to the next: its point that is nearest to the spot.
    const distances = points.slice(1).map(([bx, by], i) => {
      const [ax, ay] = points[i];
      const [dx, dy] = [bx - ax, by - ay];
      const part = Math.min(1, Math.max(0, -(ax * dx + ay * dy) / (dx * dx + dy * dy || 1)));
      return Math.hypot(ax + part * dx, ay + part * dy);
    });
    return Math.min(...distances);
  }, spot);
}

/** Draws a shape for the next steps, and returns it. */
async function drawFirst(t, app, tool, pointer) {
  const map = await openMap(t, app);
  await takeTool(t, tool);
  await drag(t, pointer, map.spot(start), map.spot(away), 2, 0);
  const shape = await release(t, pointer);
  await forgetAddresses(t);
  return shape;
}

/** Moves the second handle of a shape, and then the first one, past the second. */
async function moveHandles(t, app, tool, pointer, moves, duration) {
  const first = await drawFirst(t, app, tool, pointer);
  const label = `handles of a ${tool}, ${moves} moves in ${duration} ms`;
  let map = await readMap(t);
  const second = tool === 'circle' ? await middleOf(t, 1) : map.project(first.corners[1]); // a circle has its handle at the east
  await drag(t, pointer, second, map.spot(end), moves, duration);
  const shape = await release(t, pointer);
  if (tool === 'circle') checkCircle(map, shape, map.project(first.centre), map.spot(end), label);
  else {
    checkEqual(shape.corners[0], first.corners[0], `${label}, fixed corner`);
    checkSpot(map, shape.corners[1], map.spot(end), `${label}, moved corner`);
  }
  await forgetAddresses(t);
  map = await readMap(t);
  const beyond = map.spot([end[0] + 15, end[1] + 15]);
  await drag(t, pointer, map.project(shape.corners?.[0] ?? shape.centre), beyond, moves, duration);
  const moved = await release(t, pointer);
  if (tool === 'circle') {
    checkSpot(map, moved.centre, beyond, `${label}, centre`);
    return checkEqual(moved.radius, shape.radius, 'the radius of a circle that was moved');
  }
  checkSpot(map, moved.corners[0], beyond, `${label}, second moved corner`);
  checkEqual(moved.corners[1], shape.corners[1], `${label}, second fixed corner`);
}

/** Returns the middle of a handle in px. */
async function middleOf(t, i) {
  const { x, y, width, height } = await t.page.locator('.handle').nth(i).boundingBox();
  return [x + width / 2, y + height / 2];
}

/** Returns the outline of the shape on the map. */
function pathOf(t) {
  return t.page.locator('path.shape').getAttribute('d');
}

/** Stops a drag across the map and one of a handle. The shape from before stays, and later moves change nothing. */
async function stopDrag(t, app, pointer) {
  const first = await drawFirst(t, app, 'box', pointer);
  const [before, path, map] = [await readShape(t), await pathOf(t), await readMap(t)];
  const pressEscape = async () => {
    await t.press('Escape');
    await pointer.move(map.spot(start));
    await pointer.up();
  };
  for (const stop of [pressEscape, pointer.cancel]) {
    for (const from of [map.spot([-30, 60]), map.project(first.corners[1])]) {
      await drag(t, pointer, from, map.spot(end), 10, 0);
      await t.waitUntil((path) => document.querySelector('path.shape').getAttribute('d') !== path, path);
      await stop();
      await t.waitUntil((path) => document.querySelector('path.shape').getAttribute('d') === path, path);
      checkEqual(await readShape(t), before, 'the shape after a cancelled drag');
    }
  }
}

/** Presses arrows on a handle of a box: three steps to the right for two to the left. */
async function changeByKeys(t, app) {
  for (const [i, presses] of moveCounts.entries()) {
    const duration = speed(i + 1);
    await openMap(t, app);
    await t.press('b'); // a box in the middle of the map
    await t.waitFor(t.page.locator('.handle'));
    const map = await readMap(t);
    const handle = t.page.locator('.handle').first();
    const from = await middleOf(t, 0);
    const { corners } = await readShape(t);
    await forgetAddresses(t);
    await handle.focus();
    const keys = Array.from({ length: presses }, (_, n) => (n % 5 < 3 ? 'ArrowRight' : 'ArrowLeft'));
    const steps = keys.reduce((sum, key) => sum + (key === 'ArrowRight' ? 1 : -1), 0);
    if (duration === 0) await pressAtOnce(t, keys);
    else
      for (const key of keys) {
        await t.press(key);
        await new Promise((resolve) => setTimeout(resolve, duration / presses));
      }
    await t.press('Tab'); // the focus leaves the handle, which ends the series
    await t.waitUntil(() => globalThis.addresses.length > 0);
    const shape = await readShape(t);
    const label = `${presses} presses in ${duration} ms`;
    checkSpot(map, shape.corners[0], [from[0] + (steps * map.width) / 100, from[1]], label);
    checkEqual(shape.corners[1], corners[1], `${label}, the other corner`);
    if (duration === 0) checkEqual(shape.changes, 1, `${label}, changes of the search`);
  }
  const before = await readShape(t);
  await t.page.locator('.handle').first().focus();
  await pressAtOnce(t, ['ArrowUp', 'ArrowUp', 'Escape']);
  checkEqual(await readShape(t), before, 'the shape after Escape');
  await t.press('ArrowUp');
  await t.waitUntil((n) => globalThis.addresses.length > n, before.changes); // without a press for half a second
  checkEqual((await readShape(t)).changes, before.changes + 1, 'changes of the search for one press');
}

/** Presses keys on the focused element, so fast that no timer runs between them. */
function pressAtOnce(t, keys) {
  return t.page.evaluate(async (keys) => {
    for (const key of keys) {
      document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
      for (let i = 0; i < 3; i++) await undefined; // the page applies each press in a microtask
    }
  }, keys);
}

/** Types a radius that Escape takes back, and then another one. */
async function typeShape(t, app) {
  await openMap(t, app);
  await t.press('c');
  const field = t.field(m('search_radius'));
  await t.waitFor(field);
  const before = await readShape(t);
  await forgetAddresses(t);
  const restored = await field.evaluate(async (input) => {
    input.focus();
    input.value = '55';
    input.dispatchEvent(new InputEvent('input', { bubbles: true }));
    for (let i = 0; i < 3; i++) await undefined; // the page applies it in a microtask
    input.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true, cancelable: true }));
    for (let i = 0; i < 3; i++) await undefined;
    return input.value;
  });
  checkEqual([restored, await readShape(t)], [String(before.radius), { ...before, changes: 0 }], 'after Escape');
  await field.fill('1234');
  await t.press('Tab');
  await t.waitUntil(() => globalThis.addresses.length > 0);
  const { changes, radius } = await readShape(t);
  checkEqual([radius, changes], [1234, 1], 'the radius that was typed');
}

/** Draws by a finger until a second one moves the map. */
async function pinch(t, app) {
  const map = await openMap(t, app);
  await takeTool(t, 'box');
  const pointer = await touchPointer(t);
  await drag(t, pointer, map.spot(start), map.spot(away), 2, 0);
  await t.waitUntil(() => document.querySelector('path.shape').getAttribute('d'));
  await pointer.down(map.spot(away), map.spot(end));
  await t.waitUntil(() => !document.querySelector('path.shape').getAttribute('d'));
  await pointer.up();
  checkEqual((await readShape(t)).changes, 0, 'changes of the search by two fingers');
}
