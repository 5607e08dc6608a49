// The names of versions by their order: v1, v2.
import { isTrained, isUnderway, type Metrics, type Version } from './calls';

/** A version with its number, which is its place in the order of versions. */
export interface NumberedVersion extends Version {
  readonly number: number;
}

/**
 * Returns the number of training pictures that a version has more than the previous one, and the number of pictures with another label.
 */
export function trainingChanges(now: Metrics, before: Metrics | null | undefined): { more: number; corrected: number } {
  const less = now.pictures - (before?.pictures ?? now.pictures);
  return { more: now.since?.new_inputs || less, corrected: now.since?.corrected_inputs ?? 0 };
}

/** Returns precision and recall of each concept at its cut-off. Versions of the oldest programs have one cut-off for all: `at`. */
export function conceptQuality(metrics: Metrics): { at: number | undefined; of: readonly (Quality | undefined)[] } {
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
interface Quality {
  readonly precision: number;
  readonly recall: number;
}

/** Returns the concepts with less precision than promised, with the precision that cross-validation supports. */
export function unmetPromises(metrics: Metrics): { name: string; supported: number }[] {
  const { concepts = [], promised_precision: promised } = metrics.sightline ?? {};
  return concepts.flatMap(({ supported_precision: supported }, i) => {
    if (promised === undefined || supported === undefined || supported >= promised) return [];
    return [{ name: metrics.binary_metrics?.[i]?.concept.name ?? '', supported }];
  });
}

/** Numbers versions. A failed one has the number of the next one. */
export function numberVersions(versions: readonly Version[]): NumberedVersion[] {
  let n = 0;
  return versions
    .toReversed()
    .map((v) => ({ ...v, number: isTrained(v) || isUnderway(v) ? ++n : n + 1 }))
    .toReversed();
}
