// Numbers a model's versions (v1, v2), and reads their marks, and their quality and changes from their metrics.
import type { Application } from '../../host/application.svelte';
import { type MarkKind, versionKey } from '../../host/syncMarks';
import { isTrained, isUnderway, type Metrics, type Version } from './calls';

/** A version with its number: its place among the model's versions that are trained or in training, starting at 1. */
export interface NumberedVersion extends Version {
  readonly number: number;
}

/** Returns those of a model's versions that are listed, newest first: a failed version only if it is the newest. */
export const listed = <V extends Version>(all: readonly V[]): V[] =>
  all.filter((v, i) => i === 0 || isTrained(v) || isUnderway(v));

/** Returns the mark of a version of a model. In training it is never "confirmed". */
export function markOfVersion(app: Application, model: string, v: Version): MarkKind | undefined {
  const mark = app.markOf('versions', versionKey(model, v.id));
  return mark === 'confirmed' && isUnderway(v) ? undefined : mark;
}

/**
 * Returns the changes of the training set since the previous version. more: number of new pictures. If there are none, the difference in
 * the number of pictures, negative if pictures were removed. corrected: number of pictures with a changed or removed label.
 */
export function trainingChanges(now: Metrics, before: Metrics | null | undefined): { more: number; corrected: number } {
  const less = now.pictures - (before?.pictures ?? now.pictures);
  return { more: now.since?.new_inputs || less, corrected: now.since?.corrected_inputs ?? 0 };
}

/** Returns precision and recall of each concept at its cut-off. at: the common cut-off of all concepts in metrics of old programs. */
export function conceptQuality(metrics: Metrics): {
  at: number | undefined;
  byConcept: readonly (Quality | undefined)[];
} {
  const conceptMetrics = metrics.sightline?.concepts ?? [];
  if (conceptMetrics.some((c) => c.precision !== undefined)) {
    return {
      at: undefined,
      byConcept: conceptMetrics.map(({ precision, recall }) =>
        precision !== undefined && recall !== undefined ? { precision, recall } : undefined,
      ),
    };
  }
  const all = metrics.binary_metrics ?? [];
  return {
    at: all[0]?.precision_recall_curve.thresholds[0] ?? 0.5,
    byConcept: all.map(({ precision_recall_curve: { precision, recall } }) => ({
      precision: precision[0] ?? 0,
      recall: recall[0] ?? 0,
    })),
  };
}
interface Quality {
  readonly precision: number;
  readonly recall: number;
}

/** Returns the concepts for which cross-validation supports less than the promised precision. supported: the supported precision. */
export function unmetPromises(metrics: Metrics): { name: string; supported: number }[] {
  const { concepts = [], promised_precision: promisedPrecision } = metrics.sightline ?? {};
  return concepts.flatMap(({ supported_precision: supported }, i) => {
    if (promisedPrecision === undefined || supported === undefined || supported >= promisedPrecision) return [];
    return [{ name: metrics.binary_metrics?.[i]?.concept.name ?? '', supported }];
  });
}

/** Numbers versions, which are in order of age, the newest first. A failed version has the number of the next trained version. */
export function numberVersions(versions: readonly Version[]): NumberedVersion[] {
  let n = 0;
  return versions
    .toReversed()
    .map((v) => ({ ...v, number: isTrained(v) || isUnderway(v) ? ++n : n + 1 }))
    .toReversed();
}
