// Versions are called by their place in the order of versions: v1, v2.
import { type Metrics, trained, underway, type Version } from './calls';

/** A version beside its number, which is its place in the order of versions. */
export interface Numbered extends Version {
  readonly number: number;
}

/** What a version learned from, beside the version before: so many pictures more, or less, and so many with another label. */
export function learned(now: Metrics, before: Metrics | null | undefined): { more: number; corrected: number } {
  const less = now.pictures - (before?.pictures ?? now.pictures);
  return { more: now.since?.new_inputs || less, corrected: now.since?.corrected_inputs ?? 0 };
}

/** Precision and recall of each concept, at its cut-off; of a version that older programs trained from one value on for all. */
export function counted(metrics: Metrics): { at: number | undefined; of: readonly (Counted | undefined)[] } {
  const all = metrics.binary_metrics ?? [];
  if (all.some((b) => b.at_cut_off)) return { at: undefined, of: all.map((b) => b.at_cut_off) };
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

/** Versions beside their numbers. One that failed has the number that the next one gets. */
export function numbered(versions: readonly Version[]): Numbered[] {
  let n = 0;
  return versions
    .toReversed()
    .map((v) => ({ ...v, number: trained(v) || underway(v) ? ++n : n + 1 }))
    .toReversed();
}
