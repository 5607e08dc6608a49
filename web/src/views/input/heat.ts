// Loads the heatmaps of concepts in a stored picture.
import type { Application } from '../../host/application.svelte';
import { type Heatmap, readHeatmaps } from '../../parts/heatmap';

/** The predicted concept that a person highlights, to see its place in the picture. */
export interface HeatSelection {
  readonly id: string;
  readonly name: string;
  readonly model: string;
  readonly all: readonly string[]; // ids of the other predicted concepts, requested at once
}

const maxConcepts = 20; // maximum number of concepts in one call
const maxCached = 30; // maximum number of cached answers
const cache = new Map<string, Promise<ReadonlyMap<string, Heatmap>>>();

/** Returns the heatmaps of a concept and of others that the same request returned, by concept id. It caches the answers. */
export function heatmaps(app: Application, input: string, hot: HeatSelection): Promise<ReadonlyMap<string, Heatmap>> {
  const place = Math.floor(Math.max(0, hot.all.indexOf(hot.id)) / maxConcepts);
  const conceptIds = hot.all.includes(hot.id)
    ? hot.all.slice(place * maxConcepts, (place + 1) * maxConcepts)
    : [hot.id];
  const key = JSON.stringify([app.id, input, hot.model, conceptIds]);
  let found = cache.get(key);
  if (!found) {
    found = readHeatmaps(app.v2, hot.model, input, conceptIds);
    cache.set(key, found);
    found.catch(() => cache.delete(key));
    for (const oldest of cache.keys()) {
      if (cache.size <= maxCached) break;
      cache.delete(oldest);
    }
  }
  return found;
}
