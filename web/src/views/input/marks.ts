// The progress of a picture's labels.
import type { Application } from '../../application.svelte';
import type { PendingOperation } from '../../operations';
import type { MarkKind } from '../../syncMarks';
import type { Step } from './calls';

/** The mark of a step: it is confirmed once the origin's log has it. */
export function markOfStep(step: Step): MarkKind {
  if (step.verdict && step.verdict !== 'ok') return 'conflict';
  return step.state ?? (step.position === undefined ? 'queued' : 'confirmed');
}

/** The mark of the last label of a concept of a picture, while it is pending. */
export function markOf(pending: readonly PendingOperation[], input: string, concept: string): MarkKind | undefined {
  return pending.findLast((o) => o.input_id === input && o.content?.concepts?.some((c) => c.id === concept))?.state;
}

/** The pending operations in the copy on this device, or at the edge; none without either. */
export const pendingOf = (app: Application): readonly PendingOperation[] => app.outbox?.pending ?? [];
