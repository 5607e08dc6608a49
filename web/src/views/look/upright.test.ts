import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crc32 } from 'node:zlib';
import { upright } from './upright';

const bytes = (text: string) => Buffer.from(text, 'latin1');
const exif = (type: number) =>
  bytes(`II*\0\x08\0\0\0\x01\0\x12\x01${String.fromCharCode(type)}\0\x01\0\0\0\x06\0\0\0\0\0\0\0`);

function chunk(kind: string, body: Uint8Array): Buffer {
  const part = Buffer.concat([bytes(kind), body]);
  const numbers = Buffer.alloc(8);
  numbers.writeUInt32BE(body.length, 0);
  numbers.writeUInt32BE(crc32(part), 4);
  return Buffer.concat([numbers.subarray(0, 4), part, numbers.subarray(4)]);
}
const png = (body: Uint8Array) =>
  Buffer.concat([
    bytes('\x89PNG\r\n\x1a\n'),
    chunk('IHDR', Buffer.alloc(13)),
    chunk('eXIf', body),
    chunk('IDAT', bytes('pixels')),
  ]);
const jpeg = (body: Uint8Array) => {
  const size = 2 + 6 + body.length;
  return Buffer.concat([
    bytes(`\xff\xd8\xff\xe0\0\x04ab\xff\xe1\0${String.fromCharCode(size)}Exif\0\0`),
    body,
    bytes('\xff\xdarest'),
  ]);
};

test('an orientation as LONG, or after Exif in a PNG, becomes one that browsers use', async () => {
  const prefix = (body: Buffer) => Buffer.concat([bytes('Exif\0\0'), body]);
  const cases: [Buffer, Buffer][] = [
    [png(exif(4)), png(exif(3))],
    [png(prefix(exif(3))), png(exif(3))],
    [png(prefix(exif(4))), png(exif(3))],
    [png(exif(3)), png(exif(3))],
    [jpeg(exif(4)), jpeg(exif(3))],
    [jpeg(exif(3)), jpeg(exif(3))],
    [png(exif(1)), png(exif(1))],
    [bytes('GIF89a and so on'), bytes('GIF89a and so on')],
    [jpeg(exif(4)).subarray(0, 20), jpeg(exif(4)).subarray(0, 20)],
  ];
  for (const [picture, want] of cases) {
    const got = Buffer.from(await (await upright(new Blob([new Uint8Array(picture)]))).arrayBuffer());
    assert.equal(got.toString('latin1'), want.toString('latin1'));
  }
});
