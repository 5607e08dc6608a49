// Reads a picture of an addition, and makes the request that adds it.
import { base64Of } from '../../api/blobs';
import type { Schemas } from '../../api/client';
import { placeOf } from '../look/place';
import type { Entry } from './entry.svelte';
import { newId, sha256, withFile } from './identity';

/**
 * Returns the request that adds a picture. It sets the ID, and the SHA-256 and the place of the file. file: the bytes of the picture, undefined
 * if it is added from a URL.
 */
export async function requestOf(
  entry: Entry,
  file: Blob | undefined,
  usesPlaces: boolean,
): Promise<Schemas['NewInput']> {
  const { url, id, crop, concepts, metadata, geo, file: path } = entry.source;
  let image: Schemas['NewInput']['data']['image'] = { url };
  if (file) {
    const bytes = await file.arrayBuffer();
    const [hash, base64, place] = await Promise.all([sha256(bytes), base64Of(file), placeOf(bytes)]);
    image = { base64 };
    entry.hash = hash;
    if (place && !geo) [entry.place, entry.isPlaceWritten] = [place, usesPlaces];
  }
  if (!entry.isOtherId) entry.id = id ?? (await newId(entry.source, entry.hash));
  return {
    id: entry.id,
    data: {
      image: { ...image, ...(crop && { crop }) },
      ...(path ? { metadata: withFile(metadata, path) } : metadata && { metadata }),
      ...(concepts && { concepts }),
      ...(geo && { geo }),
      ...(entry.place && entry.isPlaceWritten && { geo: { geo_point: entry.place } }),
    },
  };
}
