// Stores the pictures that a person dropped for a similarity search. A URL cannot contain a picture, so it has the picture's hash. This
// browser stores the newest pictures only. In another browser, the page of such a URL reports a missing picture.
import type { Clause } from './clause';

const maxPictures = 12; // maximum number of stored pictures

/** The name of the cache with the dropped pictures. */
export const droppedPictures = 'dropped-pictures';
const loaded = new Map<string, { readonly base64: string; readonly blob: Blob }>();

/** Stores a picture and returns its name: the first 24 hexadecimal digits of its SHA-256. */
export async function drop(blob: Blob): Promise<string> {
  const bytes = await blob.arrayBuffer();
  const sum = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  const name = [...sum.slice(0, 12)].map((b) => b.toString(16).padStart(2, '0')).join('');
  loaded.set(name, { base64: base64(new Uint8Array(bytes)), blob });
  try {
    const cache = await caches.open(droppedPictures);
    await cache.put(`/${name}`, new Response(blob));
    const all = await cache.keys();
    await Promise.all(all.slice(0, Math.max(0, all.length - maxPictures)).map((old) => cache.delete(old)));
  } catch {
    // Without storage, the picture is available until the page is closed.
  }
  return name;
}

/** Returns the base64 of a dropped picture; undefined before `ready` has read it. */
export function pictureOf(name: string): string | undefined {
  return loaded.get(name)?.base64;
}

/** Returns the bytes of a dropped picture; undefined before `ready` has read it. */
export function blobOf(name: string): Blob | undefined {
  return loaded.get(name)?.blob;
}

/** Reads the dropped pictures of clauses, and reports whether all of them are on this device. */
export async function ready(clauses: readonly Clause[]): Promise<boolean> {
  const names = clauses.flatMap((c) =>
    c.kind === 'similar' && c.dropped && !loaded.has(c.dropped) ? [c.dropped] : [],
  );
  const found = await Promise.all(names.map(load));
  return found.every(Boolean);
}

async function load(name: string): Promise<boolean> {
  try {
    const answer = await (await caches.open(droppedPictures)).match(`/${name}`);
    if (!answer) return false;
    const blob = await answer.blob();
    loaded.set(name, { base64: base64(new Uint8Array(await blob.arrayBuffer())), blob });
    return true;
  } catch {
    return false;
  }
}

/** Returns the base64 of bytes. It converts them in parts, since one call would have too many arguments. */
export function base64(bytes: Uint8Array): string {
  let text = '';
  for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(text);
}
