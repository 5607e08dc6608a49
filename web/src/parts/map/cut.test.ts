import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import type { MultiPolygon, Polygon, Position } from 'geojson';
import { feature, mesh } from 'topojson-client';
import { cutCountry, cutLines } from './cut';

const topology = JSON.parse(
  readFileSync(createRequire(import.meta.url).resolve('world-atlas/countries-110m.json'), 'utf8'),
);
const { features } = feature(topology, topology.objects.countries) as unknown as GeoJSON.FeatureCollection<
  Polygon | MultiPolygon
>;
const longest = (line: Position[]) =>
  Math.max(...line.map((at, i) => (i ? Math.abs((at[0] as number) - (line[i - 1]?.[0] as number)) : 0)));

test('no line of a coast crosses the whole map', () => {
  const coast = mesh(topology, topology.objects.countries, (a, b) => a === b);
  assert.ok(coast.coordinates.some((line) => longest(line) > 180)); // in the original atlas
  const cut = cutLines(coast);
  assert.ok(cut.coordinates.every((line) => longest(line) < 40));
  assert.ok(cut.coordinates.length > coast.coordinates.length);
});

test('a country beyond 180° is cut into parts, and holes stay in their part', () => {
  const cutByName = (name: string) => {
    const one = features.find((f) => f.properties?.name === name);
    assert.ok(one, name);
    return cutCountry(one).geometry.coordinates;
  };
  const russia = cutByName('Russia');
  const middle = russia.map((rings) => rings[0]?.map(([x]) => x as number) as number[]);
  assert.ok(
    middle.some((xs) => Math.max(...xs) < -160),
    'Chukotka',
  );
  for (const xs of middle) assert.ok(Math.max(...xs) - Math.min(...xs) < 200);
  assert.equal(cutByName('South Africa')[0]?.length, 2); // Lesotho is a hole
  assert.equal(cutByName('France').length, 3);
  // Antarctica reaches the pole.
  assert.ok(
    cutByName('Antarctica')
      .flat(2)
      .some(([, y]) => (y as number) < -89),
  );
});
