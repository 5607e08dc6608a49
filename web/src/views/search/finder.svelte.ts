// The results of a search: the number of matches, their scores, pages of hits, and the hits with the same file as the query.

import { type Schemas, v2 } from '../../api/client';
import { type Notice, withNotices } from '../../api/notices';
import { type Clause, ready, type Similar, toQuery } from '../../clauses';
import { pictureOf } from '../../clauses/pictures';
import type { Application, By } from '../../host/application.svelte';
import type { View } from '../../parts/map/base';
import type { Place } from '../../parts/map/place';

export type Hit = Schemas['Hit'];
export type Scores = Schemas['Scores'];

export interface SearchResult {
  readonly matching: number; // number of inputs that match all clauses
  readonly scores?: Scores; // missing if no clause ranks
  readonly first: readonly Hit[];
  readonly least: number; // minimum score of the first hits; 0: no minimum
  readonly ms: number; // duration of the request for the hits
  readonly by: By;
  readonly notices: readonly Notice[]; // for example names that no concept has
}

/** The number of hits on a page. */
export const size = 60;

/** Returns the body of the search request. */
export function bodyOf(clauses: readonly Clause[], least: number, page = 1): Schemas['SearchRequest'] {
  return {
    query: { ...toQuery(clauses), ...(least > 0 && { min_score: least }) },
    pagination: { page, per_page: size },
  };
}

/** The error for a search with a dropped picture that is not on this device. */
export class PictureUnavailable extends Error {}

async function refuse(clauses: readonly Clause[]): Promise<void> {
  if (!(await ready(clauses))) throw new PictureUnavailable();
}

/** The scores of all matches tell from which score on the first hits are read. */
export async function find(
  app: Application,
  clauses: readonly Clause[],
  bins: number,
  leastOf: (scores: Scores) => number,
): Promise<SearchResult> {
  await refuse(clauses);
  const { summary } = await app.v2.POST('/searches/summary', {
    body: { query: toQuery(clauses), summary: { scores: { bins } } },
  });
  const least = summary.scores ? leastOf(summary.scores) : 0;
  const startedAt = performance.now();
  let notices: readonly Notice[] = [];
  const ask = withNotices(app.ask, (found) => {
    notices = found;
  });
  const { hits: first } = await v2(ask).POST('/searches', { body: bodyOf(clauses, least) });
  return { first, least, ms: performance.now() - startedAt, by: app.by, notices, ...summary };
}

/** Returns a page of the hits with at least a score. Pages are numbered from 1. */
export async function hitsOf(
  app: Application,
  clauses: readonly Clause[],
  least: number,
  page: number,
): Promise<readonly Hit[]> {
  return (await app.v2.POST('/searches', { body: bodyOf(clauses, least, page) })).hits;
}

/** The places of the pictures, in the resolution of a map. The world is 512·2^zoom px wide on ours. */
export async function placesOf(
  app: Application,
  clauses: readonly Clause[],
  view: Pick<View, 'zoom' | 'box'>,
): Promise<readonly Place[]> {
  await refuse(clauses);
  const zoom = Math.max(0, Math.min(24, Math.floor(view.zoom) + 1));
  const { summary } = await app.v2.POST('/searches/summary', {
    body: { query: toQuery(clauses), summary: { places: { zoom, box: view.box } } },
  });
  return summary.places ?? [];
}

/** Returns the ids of the inputs with the same file as a picture of the query. */
export async function sameAs(app: Application, clauses: readonly Clause[]): Promise<Set<string>> {
  const like = clauses.filter((c): c is Similar => c.kind === 'similar' && !c.negate && !c.crop);
  // Without an answer a hit still shows why it matched.
  const lists = await Promise.all(
    like.map(async (c) => [...(c.id ? [c.id] : []), ...(await same(app, c).catch(() => []))]),
  );
  return new Set(lists.flat());
}

async function same(
  app: Application,
  { id, dropped, base64 = dropped && pictureOf(dropped) }: Similar,
): Promise<string[]> {
  if (id) {
    const { duplicates } = await app.v2.GET('/inputs/{input_id}/duplicates', {
      params: { path: { input_id: id }, query: { per_page: 100 } },
    });
    return duplicates.filter((d) => d.tier === 'same_file').map((d) => d.input.id);
  }
  if (!base64) return [];
  const query = { ands: [{ input: { data: { image: { base64 } } } }] };
  const { hits } = await app.v2.POST('/searches', { body: { query, pagination: { page: 1, per_page: 100 } } });
  return hits.map((hit) => hit.input.id);
}
