import type { Application } from '../../application.svelte';
import { type Clause, toQuery } from '../../clauses';

/**
 * For a search without results: returns the index of the clause to remove so that the most inputs match, and their number. If every search
 * with one clause less has no results either, it returns undefined.
 */
export async function bestFilterToRemove(
  app: Application,
  clauses: readonly Clause[],
): Promise<{ index: number; matching: number } | undefined> {
  const counts = await Promise.all(
    clauses.map(async (_, index) => {
      const query = toQuery(clauses.filter((_, i) => i !== index));
      const { summary } = await app.call<{ summary: { matching: number } }>('POST', '/searches/summary', {
        query,
        summary: {},
      });
      return { index, matching: summary.matching };
    }),
  );
  return counts.filter((c) => c.matching > 0).sort((a, b) => b.matching - a.matching)[0];
}
