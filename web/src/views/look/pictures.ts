// Pictures from a file, the clipboard, the camera or the samples.

import { Failure } from '../../api/console';
import type { Crop } from '../../clauses';
import type { Render } from '../../host/drawable.svelte';
import { bytesToHex } from './consistency';
import { upright } from './upright';

/** A picture to display and to predict. Its bytes are the original ones: nothing is decoded or encoded. */
export interface Picture {
  readonly id: string; // the first half of its SHA-256 in hex: the same file is the same picture
  readonly name: string;
  readonly blob: Blob;
  readonly url: string; // for an img; ends with revoke
}

/** Reads a picture's bytes. */
export async function readPicture(blob: Blob, name: string): Promise<Picture> {
  const [shown, hash] = await Promise.all([
    upright(blob),
    blob.arrayBuffer().then((bytes) => crypto.subtle.digest('SHA-256', bytes)),
  ]);
  return { id: bytesToHex(hash).slice(0, 32), name, blob, url: URL.createObjectURL(shown) };
}

/** Cuts a part out of a picture, without loss if the browser draws it. The edges are shares of the height and width. */
export async function cropPicture(p: Picture, [top, left, bottom, right]: Crop, render?: Render): Promise<Picture> {
  const bitmap = await createImageBitmap(await upright(p.blob)).catch(async (failure) => {
    if (!render) throw failure;
    return createImageBitmap(await render(p.blob));
  });
  try {
    const [x, y] = [Math.round(left * bitmap.width), Math.round(top * bitmap.height)];
    const width = Math.max(1, Math.round(right * bitmap.width) - x);
    const height = Math.max(1, Math.round(bottom * bitmap.height) - y);
    const canvas = new OffscreenCanvas(width, height);
    canvas.getContext('2d')?.drawImage(bitmap, -x, -y);
    return await readPicture(await canvas.convertToBlob({ type: 'image/png' }), p.name);
  } finally {
    bitmap.close();
  }
}

/** Reports whether a picture cannot be read because of its content. */
export function isUnreadable(failure: unknown): boolean {
  return failure instanceof Failure && [30101, 30105, 30300].includes(failure.code);
}

/** Returns a size of the same shape with no side longer than `maxSide`. Sizes are whole numbers and at least 1. */
export function fitSize(width: number, height: number, maxSide: number): { width: number; height: number } {
  const scale = Math.min(1, maxSide / Math.max(width, height, 1));
  return { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) };
}

/** One of the sample pictures with its credit. */
export interface Sample {
  readonly file: string;
  readonly title: string;
  readonly author: string;
  readonly licence: string;
  readonly page: string;
  readonly place: string; // the accuracy of its latitude and longitude
  readonly latitude: number; // degrees
  readonly longitude: number;
}

/** Downloads a sample, or credits.tsv. */
export async function fetchSample(name: string): Promise<Blob> {
  const answer = await fetch(`/samples/${name}`).catch(() => undefined);
  if (!answer) throw new Failure(0);
  if (!answer.ok) throw new Failure(answer.status, { description: answer.statusText });
  return answer.blob();
}

/** Reads the samples from the text of credits.tsv. */
export function parseSamples(credits: string): Sample[] {
  const [head = '', ...rows] = credits.split('\n').filter(Boolean);
  const names = head.split('\t');
  return rows.map((row) => {
    const cells = row.split('\t');
    const cell = (name: string) => cells[names.indexOf(name)] ?? '';
    const [latitude, longitude] = [Number(cell('latitude')), Number(cell('longitude'))];
    const [file, title, author] = [cell('file'), cell('title'), cell('author')];
    return {
      file,
      title,
      author,
      licence: cell('licence'),
      page: cell('page'),
      place: cell('place'),
      latitude,
      longitude,
    };
  });
}

/** The samples that train two example concepts with one button. */
export const sampleLessons: readonly { readonly concept: 'bird' | 'insect'; readonly files: readonly string[] }[] = [
  {
    concept: 'bird',
    files: ['07-hummingbird.jpg', '12-egrets-over-water.jpg', '16-oystercatcher.jpg', '40-red-whiskered-bulbul.jpg'],
  },
  {
    concept: 'insect',
    files: ['10-bee-on-a-petal.jpg', '21-dragonfly-face-on.jpg', '22-damselfly-on-a-leaf.jpg', '37-red-admiral.jpg'],
  },
];
