// Keeps the files of added pictures until the origin has the pictures.
import type { Application } from '../../host/application.svelte';
import { hashOf, isKnown } from './calls';
import type { Entry } from './entry.svelte';

const lookMillis = 1000; // time between two looks

/**
 * The fate of an added picture. pending: the origin may not have it yet. stored: it has it, or a person has deleted it. lost: the host has lost
 * it before. taken: another picture has its ID at the origin.
 */
type Fate = 'pending' | 'stored' | 'lost' | 'taken';
export type Settled = Exclude<Fate, 'pending'>;

/** Returns the fate of a picture that the host has added with an ID. hash: the SHA-256 of the picture. */
async function fateOf(app: Application, id: string, hash: string): Promise<Fate> {
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

/** The stored pictures whose files are kept. It reports each of them once its fate is settled. */
export class KeptFiles {
  readonly all = new Set<Entry>();
  readonly #app: Application;
  readonly #settle: (entry: Entry, fate: Settled) => void;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(app: Application, settle: (entry: Entry, fate: Settled) => void) {
    this.#app = app;
    this.#settle = settle;
  }

  add(entry: Entry): void {
    this.all.add(entry);
    if (this.#timer === undefined) this.#look();
  }

  #look(): void {
    this.#timer = setTimeout(async () => {
      for (const entry of this.all) {
        const fate = await fateOf(this.#app, entry.id, entry.hash).catch(() => 'pending' as const); // the host does not answer
        if (this.#app.ended.aborted) return;
        if (fate === 'pending') continue;
        this.all.delete(entry);
        this.#settle(entry, fate);
      }
      this.#timer = undefined;
      if (this.all.size) this.#look();
    }, lookMillis);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.all.clear();
  }
}
