// Helpers for pictures in journeys: the samples, files that a person drops, and pages that show many pictures.
import { readFile } from 'node:fs/promises';
import { check } from './browser.js';

export const samples = new URL('../samples/', import.meta.url);
export const lighthouse = '42-lighthouse-in-the-sea.jpg';

/** Returns the name of an input, or the path of the file that a person added. */
export const nameOf = ({ data: { metadata } }) => metadata?.name ?? metadata?.file;

/** Returns the bytes of a sample. If `suffix` is given, it follows at the end, which makes the sample another file. */
export async function sample(name, suffix = '') {
  return Buffer.concat([await readFile(new URL(name, samples)), Buffer.from(suffix)]);
}

/** Returns a JPEG file with a place in its Exif, in whole degrees north and east. */
export function withPlace(jpeg, latitude, longitude) {
  const tiff = Buffer.alloc(128);
  tiff.write('II*\0', 0, 'latin1');
  tiff.writeUInt32LE(8, 4); // offset of the first directory
  const entry = (at, tag, type, count, value) => {
    tiff.writeUInt16LE(tag, at);
    tiff.writeUInt16LE(type, at + 2);
    tiff.writeUInt32LE(count, at + 4);
    if (typeof value === 'string') tiff.write(value, at + 8, 'latin1');
    else tiff.writeUInt32LE(value, at + 8);
  };
  tiff.writeUInt16LE(1, 8);
  entry(10, 0x8825, 4, 1, 26); // the directory of the place
  tiff.writeUInt16LE(4, 26);
  entry(28, 1, 2, 2, 'N');
  entry(40, 2, 5, 3, 80);
  entry(52, 3, 2, 2, 'E');
  entry(64, 4, 5, 3, 104);
  for (const [at, degrees] of [
    [80, latitude],
    [104, longitude],
  ])
    [degrees, 1, 0, 1, 0, 1].forEach((n, i) => {
      tiff.writeUInt32LE(n, at + 4 * i);
    });
  const exif = Buffer.concat([Buffer.from('Exif\0\0', 'latin1'), tiff]);
  const head = Buffer.from([0xff, 0xe1, 0, 0]);
  head.writeUInt16BE(exif.length + 2, 2);
  return Buffer.concat([jpeg.subarray(0, 2), head, exif, jpeg.subarray(2)]);
}

/** Drops files on an element, as a person does: samples by their names, or any file as its name, bytes and type. */
export async function dropFiles(target, files, suffix = '') {
  const payloads = await Promise.all(
    files.map(async (file) => {
      const [name, bytes, type = 'image/jpeg'] = typeof file === 'string' ? [file, await sample(file, suffix)] : file;
      return { name, type, base64: Buffer.from(bytes).toString('base64') };
    }),
  );
  await target.evaluate((target, payloads) => {
    const data = new DataTransfer();
    for (const { name, type, base64 } of payloads) {
      const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
      data.items.add(new File([bytes], name, { type }));
    }
    for (const kind of ['dragenter', 'dragover', 'drop'])
      target.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
  }, payloads);
}

/** Returns the tiles of a grid that show an input. */
export const tiles = (t) => t.page.locator('[role=gridcell][data-cell][aria-label]');

/** Waits until the grid shows n tiles. */
export const waitForCount = (t, n) =>
  t.waitUntil((n) => document.querySelectorAll('[role=gridcell][data-cell][aria-label]').length === n, n);

/**
 * Adds parts of a sample, starting at number n, until there are `count` inputs. `makeInput` returns an input for its number and its
 * picture.
 */
export async function fillInputs(callApi, n, count, makeInput = (_, image) => ({ data: { image } })) {
  const base64 = (await sample(lighthouse)).toString('base64');
  for (; n < count; n += 100) {
    const inputs = Array.from({ length: Math.min(100, count - n) }, (_, i) => {
      const offset = ((n + i) % 20) / 50;
      return makeInput(n + i, { base64, crop: [offset, offset, offset + 0.6, offset + 0.6] });
    });
    const { status } = await callApi('POST', '/inputs', { inputs });
    check(status.code === 10000, JSON.stringify(status));
  }
}

/** Returns the ids of the public concepts by their names in a language. */
export async function loadConceptIds(code) {
  const table = await readFile(new URL(`../../models/general-v1.3/names/${code}.tsv`, import.meta.url), 'utf8');
  return new Map(
    table
      .trim()
      .split('\n')
      .map((line) => line.split('\t').reverse()),
  );
}
