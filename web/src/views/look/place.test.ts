import assert from 'node:assert/strict';
import { test } from 'node:test';
import { placeOf } from './place';

const bytes = (text: string) => Buffer.from(text, 'latin1');

/** Returns a TIFF with a place: 47.5 north, 12.25 west. */
function tiff(signature = 'II*\0'): Buffer {
  const numbers = (...list: [bytes: 2 | 4, value: number][]) => {
    const all = Buffer.alloc(list.reduce((sum, [n]) => sum + n, 0));
    let at = 0;
    for (const [n, value] of list) at = n === 2 ? all.writeUInt16LE(value, at) : all.writeUInt32LE(value, at);
    return all;
  };
  const entry = (tag: number, kind: number, count: number, value: number) =>
    numbers([2, tag], [2, kind], [4, count], [4, value]);
  const gps = 8 + 2 + 12 + 4;
  const values = gps + 2 + 4 * 12 + 4;
  const degrees = (d: number, minutes: number) => numbers([4, d], [4, 1], [4, minutes], [4, 1], [4, 0], [4, 1]);
  return Buffer.concat([
    bytes(signature),
    numbers([4, 8], [2, 1]),
    entry(0x8825, 4, 1, gps),
    numbers([4, 0], [2, 4]),
    entry(1, 2, 2, 'N'.charCodeAt(0)),
    entry(2, 5, 3, values),
    entry(3, 2, 2, 'W'.charCodeAt(0)),
    entry(4, 5, 3, values + 24),
    numbers([4, 0]),
    degrees(47, 30),
    degrees(12, 15),
  ]);
}

test('the place is read from TIFF, camera raw and JPEG XL', async () => {
  const files = {
    tiff: tiff(),
    orf: tiff('IIRO'),
    rw2: tiff('IIU\0'),
    jxl: Buffer.concat([bytes('\0\0\0\x0cJXL \r\n\x87\n\0\0\0\xa0Exif\0\0\0\0'), tiff(), bytes('pixels')]),
    cr3: Buffer.concat([bytes('\0\0\0\x18ftypcrx \0\0\0\x01crx isom\0\0\0\x90CMT1'), tiff(), bytes('data')]),
    raf: Buffer.concat([bytes('FUJIFILMCCD-RAW '), Buffer.alloc(84), bytes('\xff\xd8\xff\xe1\0\xb0Exif\0\0'), tiff()]),
  };
  for (const [name, file] of Object.entries(files)) {
    assert.deepEqual(await placeOf(new Uint8Array(file).buffer), { latitude: 47.5, longitude: -12.25 }, name);
  }
  for (const file of ['', 'x', 'II*\0', 'FUJIFILMCCD-RAW without', 'II*\0\x08\0\0\0\xff\xff'])
    assert.equal(await placeOf(new Uint8Array(bytes(file)).buffer), undefined);
});
