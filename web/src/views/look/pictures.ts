// Pictures as they come: from a file, the clipboard, the camera or the samples.
import type { Crop } from '../../clauses';
import { Failure } from '../../console';
import { bytesToHex } from './receipt';

/** A picture that can be shown and asked about. Its bytes are as they came: nothing is decoded on the way. */
export interface Picture {
  readonly id: string; // the first half of its SHA-256 in hex: the same file is the same picture
  readonly name: string;
  readonly blob: Blob;
  readonly base64: string;
  readonly url: string; // for an img; ends with revoke
}

/** Reads a picture's bytes. */
export async function picture(blob: Blob, name: string): Promise<Picture> {
  const [hash, base64] = await Promise.all([
    blob.arrayBuffer().then((bytes) => crypto.subtle.digest('SHA-256', bytes)),
    base64Of(blob),
  ]);
  return { id: bytesToHex(hash).slice(0, 32), name, blob, base64, url: URL.createObjectURL(blob) };
}

/** The bytes in base64. The browser's own reader is the fastest that all have. */
export function base64Of(blob: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onerror = () => reject(reader.error);
    reader.onload = () => {
      const url = reader.result as string;
      resolve(url.slice(url.indexOf(',') + 1));
    };
    reader.readAsDataURL(blob);
  });
}

/** A part of a picture, by its edges as shares of the height and width, without loss. */
export async function partOf(p: Picture, [top, left, bottom, right]: Crop): Promise<Picture> {
  const whole = await createImageBitmap(p.blob);
  try {
    const [x, y] = [Math.round(left * whole.width), Math.round(top * whole.height)];
    const width = Math.max(1, Math.round(right * whole.width) - x);
    const height = Math.max(1, Math.round(bottom * whole.height) - y);
    const canvas = new OffscreenCanvas(width, height);
    canvas.getContext('2d')?.drawImage(whole, -x, -y);
    return await picture(await canvas.convertToBlob({ type: 'image/png' }), p.name);
  } finally {
    whole.close();
  }
}

/** Whether a picture was not read because of its content. */
export function unreadable(failure: unknown): boolean {
  return failure instanceof Failure && [30101, 30105, 30300].includes(failure.code);
}

/** The pictures among what was dropped, pasted or chosen. */
export function picturesIn(files: Iterable<File>): File[] {
  return [...files].filter((file) => file.type === '' || file.type.startsWith('image/'));
}

/** A size of the same shape with no side longer than the maximum. Sizes are whole numbers and at least 1. */
export function within(width: number, height: number, most: number): { width: number; height: number } {
  const scale = Math.min(1, most / Math.max(width, height, 1));
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

/** The bytes of a sample, or of credits.tsv. */
export async function sampleFile(name: string): Promise<Blob> {
  const answer = await fetch(`/samples/${name}`).catch(() => undefined);
  if (!answer) throw new Failure(0);
  if (!answer.ok) throw new Failure(answer.status, { description: answer.statusText });
  return answer.blob();
}

/** The samples that credits.tsv lists. */
export function samplesOf(credits: string): Sample[] {
  const [head = '', ...rows] = credits.split('\n').filter(Boolean);
  const names = head.split('\t');
  return rows.map((row) => {
    const cells = row.split('\t');
    const of = (name: string) => cells[names.indexOf(name)] ?? '';
    const [latitude, longitude] = [Number(of('latitude')), Number(of('longitude'))];
    const [file, title, author] = [of('file'), of('title'), of('author')];
    return { file, title, author, licence: of('licence'), page: of('page'), place: of('place'), latitude, longitude };
  });
}

/** Which samples teach two concepts at a press: what flies with feathers, and what flies without. */
export const lessons: readonly { readonly concept: 'bird' | 'insect'; readonly files: readonly string[] }[] = [
  {
    concept: 'bird',
    files: ['07-hummingbird.jpg', '12-egrets-over-water.jpg', '16-oystercatcher.jpg', '40-red-whiskered-bulbul.jpg'],
  },
  {
    concept: 'insect',
    files: ['10-bee-on-a-petal.jpg', '21-dragonfly-face-on.jpg', '22-damselfly-on-a-leaf.jpg', '37-red-admiral.jpg'],
  },
];
