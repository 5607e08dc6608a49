// Versions are called by their place in the order of versions: v1, v2.
import { type Metrics, trained, underway, type Version } from './calls';

/** A version with its number, which is its place in the order of versions. */
export interface Numbered extends Version {
  readonly number: number;
}

/**
 * The difference between a version's training pictures and the previous version's: so many more, or fewer, and so many with another label.
 */
export function learned(now: Metrics, before: Metrics | null | undefined): { more: number; corrected: number } {
  const less = now.pictures - (before?.pictures ?? now.pictures);
  return { more: now.since?.new_inputs || less, corrected: now.since?.corrected_inputs ?? 0 };
}

/** Precision and recall of each concept at its cut-off; at one value for all in a version that the oldest programs trained. */
export function counted(metrics: Metrics): { at: number | undefined; of: readonly (Counted | undefined)[] } {
  const ours = metrics.sightline?.concepts ?? [];
  if (ours.some((c) => c.precision !== undefined)) {
    return {
      at: undefined,
      of: ours.map(({ precision, recall }) =>
        precision !== undefined && recall !== undefined ? { precision, recall } : undefined,
      ),
    };
  }
  const all = metrics.binary_metrics ?? [];
  return {
    at: all[0]?.precision_recall_curve.thresholds[0] ?? 0.5,
    of: all.map(({ precision_recall_curve: { precision, recall } }) => ({
      precision: precision[0] ?? 0,
      recall: recall[0] ?? 0,
    })),
  };
}
interface Counted {
  readonly precision: number;
  readonly recall: number;
}

/** The concepts whose cut-offs do not keep their promise, with the precision that cross-validation supports. */
export function unkept(metrics: Metrics): { name: string; supported: number }[] {
  const { concepts = [], promised_precision: promised } = metrics.sightline ?? {};
  return concepts.flatMap(({ supported_precision: supported }, i) => {
    if (promised === undefined || supported === undefined || supported >= promised) return [];
    return [{ name: metrics.binary_metrics?.[i]?.concept.name ?? '', supported }];
  });
}

/** Versions with their numbers. A failed one has the number that the next one gets. */
export function numbered(versions: readonly Version[]): Numbered[] {
  let n = 0;
  return versions
    .toReversed()
    .map((v) => ({ ...v, number: trained(v) || underway(v) ? ++n : n + 1 }))
    .toReversed();
}
