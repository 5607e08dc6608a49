// A copy of an application on this device, open: where it stands, what waits in it, and the way to ask it. One is open
// for all pages. Everything that is told is read from the copy; nothing is guessed from what was done.
import type { CopyStatus } from '../runtime/src/index';
import { call } from './ask';
import { pageToken } from './console';
import { forget, type Kept, remember } from './copies';
import { Device, runtime } from './device.svelte';
import { marksOf, type Truth } from './marks';
import { type Conflict, conflicts, newest, type Waiting, waiting } from './operations';
import { inRounds } from './rounds';

const many = 1000; // changes that wait: more are not all read at each of them

export class Copy {
  readonly app: Kept;
  readonly device: Device;

  status = $state.raw<CopyStatus>();
  waiting = $state.raw<readonly Waiting[]>([]); // in the order of travel
  conflicts = $state.raw<readonly Conflict[]>([]);
  agreed = $state.raw<readonly Conflict[]>([]); // since the page was opened
  failure = $state.raw<unknown>(); // why what waits is not known
  away = $state(false); // no contact, because the person wants none
  whole = $state(false); // all that the origin had at a moment is here, perhaps since an earlier visit
  #remembered = false;
  /** Is told when something was changed, here or elsewhere, or the origin took the application away. */
  onmoved: () => void = () => {};
  #full = 0; // when all of what waits may be read again, as performance.now() tells
  #later: ReturnType<typeof setTimeout> | undefined;

  constructor(app: Kept) {
    this.app = app;
    this.away = app.offline ?? false;
    this.whole = app.whole ?? false;
    this.device = new Device({
      copy: {
        origin: '',
        app: app.id,
        credential: async () => `Bearer ${(await pageToken(app.id)).token}`,
        offline: this.away,
        ...(app.eager && { pictures: 'eager' as const }),
      },
    });
  }

  /** Opens the copy; the first time its origin is needed for it. Says whether it is open. */
  async open(): Promise<boolean> {
    await this.device.open();
    const sync = this.#sync;
    if (!sync) return false;
    sync.onchange = (status) => void this.#take(status);
    this.status = await sync.status();
    await this.refresh();
    return this.#sync !== undefined;
  }

  /** Remembers that this browser has it. */
  remember(): void {
    this.#remembered = true;
    remember({ ...this.app, offline: this.away, whole: this.whole });
  }

  get #sync() {
    return this.device.client?.sync;
  }

  async #take(status: CopyStatus): Promise<void> {
    const before = this.status;
    this.status = status;
    if (status.as_of && !this.whole) {
      this.whole = true;
      if (this.#remembered) this.remember();
    }
    await this.refresh();
    const written = (s: CopyStatus) => s.queued + s.sent;
    const moved = !before || before.cursor !== status.cursor || written(status) > written(before);
    if (moved || status.phase === 'purged') this.onmoved();
  }

  /** The marks of what is not confirmed, by the id of the input, model or concept. */
  readonly marks = $derived({
    inputs: marksOf('input_id', this.waiting, this.conflicts),
    models: marksOf('model_id', this.waiting, this.conflicts),
    concepts: marksOf('concept_id', this.waiting, this.conflicts),
  });

  readonly truth: Truth = $derived({
    queued: this.status?.queued ?? 0,
    sent: this.status?.sent ?? 0,
    conflicts: this.conflicts.length,
    reached: this.whole || this.status?.contact !== undefined,
  });

  /** Whether the origin is out of reach, as far as the copy knows. */
  readonly offline = $derived.by(() => {
    const { phase, problem } = this.status ?? { phase: 'stopped', problem: undefined };
    return this.away || phase === 'unreachable' || phase === 'stopped' || (phase === 'connecting' && !!problem);
  });

  /** Whether all that the origin had at a moment is here. */
  has(moment: number): boolean {
    const { as_of: asOf } = this.status ?? {};
    return asOf !== undefined && Date.parse(asOf) >= moment;
  }

  /** Reads what waits and what was decided otherwise. */
  refresh = inRounds(async () => {
    try {
      const status = await this.#sync?.status();
      if (!status) return; // closed meanwhile
      const all = status.queued + status.sent;
      const operations = all ? await this.#waiting(all) : [];
      const others = status.conflicts ? await conflicts(this.device.ask) : [];
      // Who reads again when it changes is told when it has, and not that it was read.
      if (JSON.stringify(status) !== JSON.stringify(this.status)) this.status = status;
      Object.assign(this, { waiting: operations, conflicts: others, failure: undefined });
    } catch (failure) {
      if (this.#sync && this.status?.phase !== 'purged') this.failure = failure;
    }
  });

  /** What waits. Of many, those that came are read at once, and what became of the others when there is time for it. */
  async #waiting(all: number): Promise<readonly Waiting[]> {
    const began = performance.now();
    if (all > many && began < this.#full && this.waiting.length) {
      this.#later ??= setTimeout(() => {
        this.#later = undefined;
        void this.refresh();
      }, this.#full - began);
      const known = new Map(this.waiting.map((o) => [`${o.site}-${o.seq}`, o]));
      for (const o of await newest(this.device.ask, all)) known.set(`${o.site}-${o.seq}`, o);
      return [...known.values()];
    }
    const operations = await waiting(this.device.ask);
    this.#full = performance.now() + 4 * (performance.now() - began);
    return operations;
  }

  /** Keeps the copy from its origin, or lets it go on. */
  setAway(away: boolean): void {
    this.away = away;
    void this.#sync?.offline(away);
    this.remember();
  }

  /** Agrees to what is in force in place of what was said. */
  async agree(c: Conflict): Promise<void> {
    await call(this.device.ask, 'DELETE', `/sync/conflicts/${encodeURIComponent(c.id)}`);
    await this.refresh();
    this.agreed = [c, ...this.agreed];
  }

  /** The digest of what is here of the origin's log. */
  async digest() {
    const sync = this.#sync;
    if (!sync) throw new DOMException('the copy is not open', 'InvalidStateError');
    return sync.digest();
  }

  async close(): Promise<void> {
    const sync = this.#sync;
    if (sync) sync.onchange = undefined;
    clearTimeout(this.#later);
    await this.device.close();
  }
}

/** Deletes a copy that is not open, with what waits in it. */
export async function removeCopy(app: string): Promise<void> {
  await (await runtime()).Sightline.remove(`copy-${app}`);
  forget(app);
}
