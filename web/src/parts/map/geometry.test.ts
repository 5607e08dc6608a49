import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contains, distance, inKilometres, type Within } from '../../clauses/clause';
import { far, near, showing, within } from './base';
import { areaOf, around, asOther, away, handles, line, moveHandle, outline } from './geometry';

const circle: Within = { kind: 'within', latitude: 46.67, longitude: 11.16, radius: 220, unit: 'km' };

test('every point of a circle has the same distance from its middle', () => {
  for (const at of outline(circle)) assert.ok(Math.abs(distance(circle, at) - 220) < 0.01);
  const [middle, edge] = handles(circle);
  assert.equal(middle.latitude, circle.latitude);
  assert.ok(Math.abs(distance(middle, edge) - 220) < 0.01);
  const wider = moveHandle(circle, 1, away(circle, 300, 90));
  assert.ok(wider.kind === 'within' && Math.abs(inKilometres(wider.radius, wider.unit) - 300) < 0.1);
  const moved = moveHandle(circle, 0, { latitude: 10.123456, longitude: 20 });
  assert.deepEqual(moved, { ...circle, latitude: 10.1235, longitude: 20 });
});

test('moving a corner of a box keeps the opposite corner', () => {
  const box = asOther(circle);
  assert.ok(box.kind === 'box' && contains(box, circle));
  const to = { latitude: 50, longitude: 20 };
  const larger = moveHandle(box, 0, to);
  assert.deepEqual(handles(larger), [to, handles(box)[1]]);
  // The handle moves past the opposite corner, which stays a corner of the box.
  const turned = moveHandle(box, 0, { latitude: 40, longitude: 5 });
  const corner = handles(box)[1];
  assert.ok(
    turned.kind === 'box' &&
      turned.corners.some((c) => c.latitude === corner.latitude && c.longitude === corner.longitude),
  );
  const back = asOther(box);
  assert.ok(back.kind === 'within' && Math.abs(back.radius - 220) < 2, JSON.stringify(back));
});

test('a box never crosses the antimeridian', () => {
  const box = asOther({ ...circle, longitude: 179.5 });
  assert.ok(box.kind === 'box');
  if (box.kind === 'box') assert.deepEqual(box.corners[0].longitude, 180);
});

test('the area around places is the smallest box', () => {
  assert.deepEqual(around([]), undefined);
  assert.deepEqual(
    around([
      { latitude: 1, longitude: 170 },
      { latitude: -2, longitude: -175 },
    ]),
    [-2, 170, 1, -175],
  );
  assert.deepEqual(
    around([
      { latitude: 1, longitude: 10 },
      { latitude: 3, longitude: -5 },
    ]),
    [1, -5, 3, 10],
  );
  const [south, west, north, east] = areaOf(circle);
  assert.ok(south > 44.6 && south < 44.8 && north > 48.6 && north < 48.7, `${south} ${north}`);
  assert.ok(west > 8 && west < 8.4 && east > 13.9 && east < 14.3, `${west} ${east}`);
});

test('the view of an area has its centre and shows all of it', () => {
  const { centre, zoom } = showing([40, 0, 50, 20], 600, 400);
  assert.equal(centre.longitude, 10);
  assert.ok(centre.latitude > 45 && centre.latitude < 45.5);
  assert.ok(zoom > 3 && zoom < 5, String(zoom));
  assert.equal(Math.abs(showing([-10, 170, 10, -170], 600, 400).centre.longitude), 180);
  assert.equal(showing([1, 1, 1, 1], 600, 400).zoom, 9);
  assert.equal(far(25, 360, 520), 1);
  assert.ok(far(25, 2100, 1200) > 2 && far(25, 2100, 1200) < far(0, 2100, 1200), String(far(25, 2100, 1200)));
  assert.equal(far(90, 2100, 1200), 1);
  assert.equal(near(-179, 179), 181);
  assert.equal(within(181), -179);
});

test('points behind the globe are not drawn', () => {
  const spots = [
    { x: 0, y: 0, visible: true },
    { x: 1, y: 1, visible: false },
    { x: 2, y: 2, visible: true },
    { x: 900, y: 2, visible: true },
  ];
  assert.equal(line(spots, 100), 'M0.0,0.0L2.0,2.0M900.0,2.0');
});
