import type { Application } from '../../application.svelte';
import { type Clause, toQuery } from '../../clauses';

/** For a search without results: the clause without which most inputs would match; undefined if no single clause is to blame. */
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
