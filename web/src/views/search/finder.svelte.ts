// The results of a search: the number of matches, their scores, pages of hits, and the hits with the same file as the query.
import { call } from '../../apiCall';
import type { Application, By } from '../../application.svelte';
import { type Clause, ready, type Similar, toQuery } from '../../clauses';
import { type Notice, withNotices } from '../../notices';
import type { Place } from '../../parts/map/place';

export interface Hit {
  readonly score: number;
  readonly input: {
    readonly id: string;
    readonly data: {
      readonly concepts?: { readonly id: string; readonly name: string; readonly value: number }[];
      readonly geo?: { readonly geo_point: { readonly latitude: number; readonly longitude: number } };
    };
  };
}

interface HitsAnswer {
  readonly hits: readonly Hit[];
}

export interface Scores {
  readonly from: number; // lower edge of the first bin
  readonly to: number; // upper edge of the last bin
  readonly counts: readonly number[];
  readonly cut_off?: { readonly value: number; readonly source: string; readonly examples: number };
}

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
export function bodyOf(clauses: readonly Clause[], least: number, page = 1): { query: object; pagination: object } {
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
  const { summary } = await app.call<{ summary: { matching: number; scores?: Scores } }>('POST', '/searches/summary', {
    query: toQuery(clauses),
    summary: { scores: { bins } },
  });
  const least = summary.scores ? leastOf(summary.scores) : 0;
  const startedAt = performance.now();
  let notices: readonly Notice[] = [];
  const ask = withNotices(app.ask, (found) => {
    notices = found;
  });
  const { hits: first } = await call<HitsAnswer>(ask, 'POST', '/searches', bodyOf(clauses, least));
  return { first, least, ms: performance.now() - startedAt, by: app.by, notices, ...summary };
}

/** Returns a page of the hits with at least a score. Pages are numbered from 1. */
export async function hitsOf(
  app: Application,
  clauses: readonly Clause[],
  least: number,
  page: number,
): Promise<readonly Hit[]> {
  const { hits } = await app.call<HitsAnswer>('POST', '/searches', bodyOf(clauses, least, page));
  return hits;
}

/** The places of the pictures, in the resolution of a map. The world is 512·2^zoom px wide on ours. */
export async function placesOf(
  app: Application,
  clauses: readonly Clause[],
  view: { zoom: number; box: readonly number[] },
): Promise<Place[]> {
  await refuse(clauses);
  const zoom = Math.max(0, Math.min(24, Math.floor(view.zoom) + 1));
  const summary = { places: { zoom, box: view.box } };
  const answer = await app.call<{ summary: { places: Place[] } }>('POST', '/searches/summary', {
    query: toQuery(clauses),
    summary,
  });
  return answer.summary.places;
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

async function same(app: Application, c: Similar): Promise<string[]> {
  if (c.id) {
    type Answer = { duplicates: { input: { id: string }; tier: string }[] };
    const { duplicates } = await app.call<Answer>('GET', `/inputs/${encodeURIComponent(c.id)}/duplicates?per_page=100`);
    return duplicates.filter((d) => d.tier === 'same_file').map((d) => d.input.id);
  }
  const [like] = toQuery([c]).ands as { output: { input: { data: { image: { base64?: string } } } } }[];
  const { base64 } = like?.output.input.data.image ?? {};
  if (!base64) return [];
  const query = { ands: [{ input: { data: { image: { base64 } } } }] };
  const { hits } = await app.call<{ hits: Hit[] }>('POST', '/searches', {
    query,
    pagination: { page: 1, per_page: 100 },
  });
  return hits.map((hit) => hit.input.id);
}
