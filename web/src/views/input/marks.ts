// How far what was said of a picture has come.
import type { Application } from '../../application.svelte';
import type { Mark } from '../../marks';
import type { Waiting } from '../../operations';
import type { Step } from './calls';

/** The mark of a step: confirmed is what stands in the origin's log. */
export function markOfStep(step: Step): Mark {
  if (step.verdict && step.verdict !== 'ok') return 'conflict';
  return step.state ?? (step.position === undefined ? 'queued' : 'confirmed');
}

/** The mark of what was last said of a concept of a picture, while it is on its way. */
export function markOf(waiting: readonly Waiting[], input: string, concept: string): Mark | undefined {
  return waiting.findLast((o) => o.input_id === input && o.content?.concepts?.some((c) => c.id === concept))?.state;
}

/** What waits in the copy on this device, or at the edge; nothing where there is neither. */
export const waitingOf = (app: Application): readonly Waiting[] => app.outbox?.waiting ?? [];
