// The parts of a version's evaluation about single pictures, and its confusion matrix.
import type { Clause } from '../../clauses/clause';
import { address } from '../../clauses/query';
import type { Cell } from '../../parts/confusion';
import type { Metrics } from './calls';

/** A label to check: it differs from the prediction of a version that was not trained on the picture. */
export interface Weak {
  readonly input: string;
  readonly concept: { readonly id: string; readonly name: string };
  readonly yes: boolean; // it has a positive label
  readonly shows: string | undefined; // its first positive label
  readonly predicted: { readonly id: string; readonly name: string; readonly value: number }; // the predicted concept
  readonly value: number;
}

/** Returns the labels to check in the evaluation's order, which starts with the most doubtful. The server omits those within chance. */
export function weakest(metrics: Metrics | null | undefined): Weak[] {
  return (metrics?.test_set ?? []).flatMap(({ id, predicted_concepts: predicted, ground_truth_concepts: truths }) => {
    const [ownConcept, truth] = [predicted[0], truths[0]];
    if (!ownConcept || !truth) return [];
    const best = predicted.reduce((a, b) => ((b.value ?? 0) > (a.value ?? 0) ? b : a), ownConcept);
    return [
      {
        input: id,
        concept: { id: truth.id, name: truth.name },
        yes: truth.value === 1,
        value: ownConcept.value,
        shows: truths.find((t) => t.value === 1)?.name,
        predicted: { id: best.id, name: best.name, value: best.value },
      },
    ];
  });
}

/** Returns the concepts with too few pictures for a check of their labels. needed: the number of pictures that each must have. */
export function uncheckedConcepts(metrics: Metrics | null | undefined): { id: string; name: string; needed: number }[] {
  const needed = metrics?.sightline?.min_checked_pictures ?? 0; // older servers do not report it
  const few = (metrics?.binary_metrics ?? []).filter((b) => b.num_pos < needed);
  return few.map(({ concept: { id, name } }) => ({ id, name, needed }));
}

/** Returns the confusion matrix: a row and a column for each concept, and one for "no concept" if that occurs. */
export function confusion(metrics: Metrics, app: string, nothing: string): { names: string[]; cells: Cell[][] } {
  const { matrix = [], concept_ids: ids = [] } = metrics.confusion_matrix ?? {};
  const counts = metrics.sightline?.confusion_counts;
  const positives = new Map((metrics.binary_metrics ?? []).map((b) => [b.concept.id, b]));
  const withNone = matrix.some((e) => e.value > 0 && (!e.actual || !e.predicted));
  const all: (string | undefined)[] = withNone ? [...ids, undefined] : [...ids];
  const nameOf = (id: string | undefined) => (id === undefined ? nothing : (positives.get(id)?.concept.name ?? id));
  const cells = all.map((actual) =>
    all.map((predicted) => {
      const at = matrix.findIndex((e) => e.actual === actual && e.predicted === predicted);
      const share = matrix[at]?.value ?? 0;
      const row = actual === undefined ? undefined : positives.get(actual)?.num_pos;
      const count = counts?.[at] ?? (row === undefined ? (share === 0 ? 0 : undefined) : Math.round(share * row));
      const clauses = [
        ...cellClauses('labelled', actual, ids, nameOf),
        ...cellClauses('predicted', predicted, ids, nameOf),
      ];
      return { share, count, href: address(app, 'inputs', clauses) };
    }),
  );
  return { names: all.map(nameOf), cells };
}

/** Returns the clauses for one side of a cell: the concept, or none of the concepts. */
function cellClauses(
  kind: 'labelled' | 'predicted',
  id: string | undefined,
  all: readonly string[],
  nameOf: (id: string) => string,
): Clause[] {
  if (id !== undefined) return [{ kind, id, name: nameOf(id), present: true }];
  if (kind === 'predicted') return all.map((one) => ({ kind, id: one, name: nameOf(one), present: false }));
  return all.map((one) => ({ kind, id: one, name: nameOf(one), present: true, negate: true }));
}
