import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assignSlots, type Frame, pathOf, rangesAbove, sampleIndices, strongestConcepts, valuesOf } from './curves';
import { isAnimated, isVideo, splitVideos } from './videos';

const frame = (time: number, values: Record<string, number>): Frame => ({
  time,
  concepts: Object.entries(values).map(([id, value]) => ({ id, name: id.toUpperCase(), value })),
});
const frames = [
  frame(0, { tram: 0.9, street: 0.4 }),
  frame(1000, { tram: 0.8, street: 0.5 }),
  frame(2000, { turtle: 1, sea: 0.6 }),
];

test('the strongest concepts have the largest values over all frames', () => {
  assert.deepEqual(strongestConcepts(frames, 3), ['tram', 'turtle', 'street']);
  assert.deepEqual(strongestConcepts(frames, 9), ['tram', 'turtle', 'street', 'sea']);
  assert.deepEqual(strongestConcepts([frame(0, { b: 0.5, a: 0.5 })], 1), ['a']); // equal sums are in the order of ids
  assert.deepEqual(strongestConcepts([], 5), []);
});

test('a curve keeps its place while others come and go', () => {
  assert.deepEqual(assignSlots([], ['a', 'b']), ['a', 'b']);
  assert.deepEqual(assignSlots(['a', 'b'], ['b', 'c', 'a']), ['a', 'b', 'c']);
  assert.deepEqual(assignSlots(['a', 'b', 'c'], ['d', 'c', 'a']), ['a', 'd', 'c']);
});

test('the values of a concept give the ranges at or above a limit', () => {
  assert.deepEqual(valuesOf(frames, 'tram'), [0.9, 0.8, 0]);
  assert.deepEqual(rangesAbove([0.3, 0.9, 0.2, 0.1, 0.3], 0.3), [
    [0, 1],
    [4, 4],
  ]);
  assert.deepEqual(rangesAbove([0, 0.29], 0.3), []);
});

test('a path has a point for each received frame, and continues the last one', () => {
  assert.equal(pathOf([1, 0.5], 4), 'M0 0L0.25 0.5L0.5 0.5');
  assert.equal(pathOf([1 / 3], 1), 'M0 0.6667L1 0.6667');
  assert.equal(pathOf([], 4), '');
});

test('a strip shows frames from all parts', () => {
  assert.deepEqual(sampleIndices(600, 3), [100, 300, 500]);
  assert.deepEqual(sampleIndices(3, 10), [0, 1, 2]);
  assert.deepEqual(sampleIndices(5, 0), [2]);
  assert.deepEqual(sampleIndices(0, 10), []);
});

// Returns a GIF of one pixel with this number of pictures.
const gif = (pictures: number) => {
  const head = [...new TextEncoder().encode('GIF89a'), 1, 0, 1, 0, 0x80, 0, 0, 255, 0, 0, 0, 0, 255];
  const one = [0x21, 0xf9, 4, 0, 100, 0, 0, 0, 0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0];
  return new Uint8Array([...head, ...Array.from({ length: pictures }, () => one).flat(), 0x3b]);
};
const webp = (flags: number) => new Uint8Array([...new TextEncoder().encode('RIFF....WEBPVP8X....'), flags, 0, 0, 0]);

test('videos are recognised by type, by name if the type is unknown, and by more than one picture', async () => {
  const file = (name: string, type: string, bytes = new Uint8Array([1])) => new File([bytes], name, { type });
  for (const [name, type, is] of [
    ['a.mp4', 'video/mp4', true],
    ['a.bin', 'video/x-matroska', true],
    ['A.WMV', '', true],
    ['a.mkv', 'application/octet-stream', true],
    ['a.mp4', 'text/plain', false],
    ['a.raw', '', false],
    ['a.jpg', 'image/jpeg', false],
  ] as const)
    assert.equal(isVideo(file(name, type)), is, `${name} ${type}`);
  for (const [bytes, is] of [
    [gif(1), false],
    [gif(2), true],
    [webp(0x02), true],
    [webp(0x10), false],
    [new TextEncoder().encode('RIFF....WEBPVP8 '), false],
    [new Uint8Array(), false],
  ] as const)
    assert.equal(await isAnimated(new Blob([bytes])), is, `${bytes}`);
  const [photo, moving, film] = [
    file('s.gif', 'image/gif', gif(1)),
    file('m.gif', 'image/gif', gif(3)),
    file('f.mp4', 'video/mp4'),
  ];
  assert.deepEqual(await splitVideos([photo, moving, film]), { videos: [moving, film], others: [photo] });
});
