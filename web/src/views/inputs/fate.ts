// Finds whether the origin has a picture that a host has added.
import type { Application } from '../../host/application.svelte';
import { hashOf, isKnown } from './calls';

/**
 * The fate of an added picture. pending: the origin may not have it yet. stored: it has it, or a person has deleted it. lost: the host has lost
 * it before. taken: another picture has its ID at the origin.
 */
type Fate = 'pending' | 'stored' | 'lost' | 'taken';

/** Returns the fate of a picture that the host has added with an ID. hash: the SHA-256 of the picture. */
export async function fateOf(app: Application, id: string, hash: string): Promise<Fate> {
  const mark = app.markOf('inputs', id);
  if (mark === 'confirmed') return (await isKnown(app, id)) ? 'stored' : 'lost';
  const refused = app.outbox?.conflicts.find(({ kind, input_id }) => kind === 'input_create' && input_id === id);
  if (mark !== 'conflict' || !refused) return 'pending';
  // The origin had the ID already: from a call whose answer was lost, or from another device that added another picture.
  const stored = await hashOf(app, id);
  if (!stored) return 'pending'; // the picture of that input is not known yet
  await app.outbox?.dismiss(refused);
  return stored === hash ? 'stored' : 'taken';
}
