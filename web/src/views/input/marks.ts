// The sync marks of a picture's labels and history.
import type { Application } from '../../host/application.svelte';
import type { Pending } from '../../host/outbox.svelte';
import type { MarkKind } from '../../host/syncMarks';
import type { Step } from './calls';

/** Returns the mark of a step. */
export const markOfStep = ({ verdict, state }: Step): MarkKind => (verdict ? 'conflict' : state);

/** Returns the mark of the last pending label of a picture with a concept; undefined if none is pending. */
export function markOf(pending: readonly Pending[], input: string, concept: string): MarkKind | undefined {
  return pending.findLast((o) => o.input_id === input && o.content.concepts?.some((c) => c.id === concept))?.state;
}

/** Returns the pending operations of the replica on this device, or of the edge; empty if there is neither. */
export const pendingOf = (app: Application): readonly Pending[] => app.outbox?.pending ?? [];
