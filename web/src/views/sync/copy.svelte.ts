// A copy of an application on this device, open: what it holds, what waits in it, and what is done to it. Everything
// that is shown is read from the copy; nothing is guessed from what was done.
import type { CopyStatus } from '../../../runtime/src/index';
import { pageToken } from '../../console';
import { Device, runtime } from '../../device.svelte';
import { type Mark, marksOf, type Truth } from '../../marks';
import type { Picture } from '../look/pictures';
import { Calls, type Conflict, type Content, type Input, type Model, type Operation, type Waiting } from './calls';
import { type Digest, originDigest } from './digest';
import { forget, type Kept, remember } from './kept';

const more = 24; // pictures that are shown more, each time

export class Copy {
  readonly app: Kept;
  readonly device: Device;
  readonly calls: Calls;

  status = $state.raw<CopyStatus>();
  waiting = $state.raw<readonly Waiting[]>([]);
  conflicts = $state.raw<readonly Conflict[]>([]);
  agreed = $state.raw<readonly Conflict[]>([]); // since the page was opened
  inputs = $state.raw<readonly Input[]>([]); // the newest, newest first
  count = $state(0); // of all inputs
  concepts = $state.raw<readonly { id: string; name: string }[]>([]);
  models = $state.raw<readonly Model[]>([]);
  read = $state(false); // whether all these were read
  failure = $state.raw<unknown>();
  away = $state(false); // no contact, because the person wants none
  #most = more;
  #names = new Map<string, string>(); // of what was seen here, by id: what is gone keeps its name
  #addresses = new Map<string, Promise<string>>(); // by path: of an image in this page's memory
  #round: Promise<void> | undefined;
  #again = false;

  constructor(app: Kept) {
    this.app = app;
    this.away = app.offline ?? false;
    this.device = new Device({
      copy: {
        origin: '',
        app: app.id,
        credential: async () => `Bearer ${(await pageToken(app.id)).token}`,
        offline: this.away,
      },
    });
    this.calls = new Calls(this.device.ask, app.id);
  }

  /** Opens the copy; the first time its origin is needed for it. Says whether it is open. */
  async open(): Promise<boolean> {
    await this.device.open();
    const sync = this.#sync;
    if (!sync) return false;
    remember({ ...this.app, offline: this.away });
    sync.onchange = (status) => {
      this.status = status;
      void this.refresh();
    };
    this.status = await sync.status();
    await this.refresh();
    return true;
  }

  get #sync() {
    return this.device.client?.sync;
  }

  /** The marks of what is not confirmed, by the id of the input or model. */
  readonly marks = $derived({
    inputs: marksOf('input_id', this.waiting, this.conflicts),
    models: marksOf('model_id', this.waiting, this.conflicts),
  });

  /** An input's mark: confirmed is what neither waits nor was decided otherwise, as the log said. */
  markOf(input: Input): Mark {
    return this.marks.inputs.get(input.id) ?? 'confirmed';
  }

  readonly truth: Truth = $derived({
    queued: this.status?.queued ?? 0,
    sent: this.status?.sent ?? 0,
    conflicts: this.conflicts.length,
    reached: this.status?.contact !== undefined,
  });

  /** What the thing is called that an operation is about. */
  nameOf(o: Operation): string {
    const id = o.input_id ?? o.model_id ?? o.concept_id ?? '';
    return this.#names.get(id) ?? o.content?.name ?? id;
  }

  /** Whether the origin is out of reach, as far as the copy knows. */
  readonly offline = $derived.by(() => {
    const { phase, problem } = this.status ?? { phase: 'stopped', problem: undefined };
    return this.away || phase === 'unreachable' || phase === 'stopped' || (phase === 'connecting' && !!problem);
  });

  /** Reads everything that is shown. What waits is read after what it is about, so that nothing that was just written looks confirmed. */
  refresh(): Promise<void> {
    if (this.#round) {
      this.#again = true;
      return this.#round;
    }
    this.#round = this.#refresh().finally(() => {
      this.#round = undefined;
      if (!this.#again) return;
      this.#again = false;
      return this.refresh();
    });
    return this.#round;
  }

  async #refresh(): Promise<void> {
    try {
      const { all, inputs } = await this.calls.newest(this.#most);
      const concepts = await this.calls.concepts();
      const models = await this.calls.models();
      const waiting = await this.calls.waiting();
      const conflicts = await this.calls.conflicts();
      const status = await this.#sync?.status();
      if (!status) return; // closed meanwhile
      for (const one of [...models, ...concepts, ...inputs]) if (one.name) this.#names.set(one.id, one.name);
      Object.assign(this, { count: all, inputs, concepts, models, waiting, conflicts, status, failure: undefined });
      this.read = true;
    } catch (failure) {
      if (this.#sync && this.status?.phase !== 'purged') this.failure = failure;
    }
  }

  /** Shows more of the older pictures. */
  async older(): Promise<void> {
    this.#most += more;
    await this.refresh();
  }

  /** Does something to the copy, and shows what it has come to. */
  async write(work: (calls: Calls) => Promise<void>): Promise<void> {
    try {
      await work(this.calls);
    } finally {
      await this.refresh();
    }
  }

  add = (p: Picture) => this.write((calls) => calls.add(p));

  /** Keeps the copy from its origin, or lets it go on. */
  setAway(away: boolean): void {
    this.away = away;
    void this.#sync?.offline(away);
    remember({ ...this.app, offline: away });
  }

  /** Agrees to what is in force in place of what was said. */
  async agree(c: Conflict): Promise<void> {
    await this.write((calls) => calls.agree(c));
    this.agreed = [c, ...this.agreed];
  }

  /** The digests of the copy's state and of the origin's. */
  async digests(): Promise<[Digest, Digest]> {
    const sync = this.#sync;
    if (!sync) throw new DOMException('the copy is not open', 'InvalidStateError');
    return [await sync.digest(), await originDigest(this.app.id, (await pageToken(this.app.id)).token)];
  }

  /** What says a conflict's operation once more, as a new write; undefined where there is nothing that it could be said of. */
  again(c: Conflict): ((calls: Calls) => Promise<void>) | undefined {
    const { kind, input_id: input, concept_id: concept, content = {} } = c;
    if (kind === 'input_create' && content.hosted)
      return (calls) => calls.addAgain(pathOf(content), content, freshId());
    if (kind === 'concept_name' && concept && content.name) return (calls) => calls.name(concept, content.name ?? '');
    if (!input || c.verdict === 'gone') return undefined;
    if (kind === 'input_labels' && content.concepts) return (calls) => calls.label(input, content.concepts ?? []);
    if (kind === 'input_delete') return (calls) => calls.remove(input);
    return undefined;
  }

  /** The address of a picture's image, in this page's memory. */
  address(path: string): Promise<string> {
    let address = this.#addresses.get(path);
    if (!address) {
      address = this.calls.picture(path).then((blob) => URL.createObjectURL(blob));
      address.catch(() => this.#addresses.delete(path)); // it may come later
      this.#addresses.set(path, address);
    }
    return address;
  }

  async close(): Promise<void> {
    const sync = this.#sync;
    if (sync) sync.onchange = undefined;
    for (const address of this.#addresses.values()) void address.then(URL.revokeObjectURL, () => {});
    this.#addresses.clear();
    await this.device.close();
  }

  /** Deletes the copy from this device, with what waits in it. */
  async remove(): Promise<void> {
    await this.close();
    await removeCopy(this.app.id);
  }
}

/** Deletes a copy that is not open. */
export async function removeCopy(app: string): Promise<void> {
  await (await runtime()).Sightline.remove(storeOf(app));
  forget(app);
}

/** The hash of the module that folds the log here, as the runtime has loaded it. */
export async function core(): Promise<string> {
  const path = '/runtime/manifest.json';
  const manifest = (await caches.match(path)) ?? (await fetch(path));
  const { files }: { files: { url: string; sha256: string }[] } = await manifest.json();
  return files.find(({ url }) => url.startsWith('guest-'))?.sha256 ?? '';
}

/** An id that nothing else has. */
export function freshId(): string {
  return crypto.randomUUID().replaceAll('-', '');
}

/** The path of the picture that an operation brought. */
export function pathOf(content: Content): string {
  return content.hosted ? new URL(content.hosted, 'http://here').pathname : '';
}

const storeOf = (app: string) => `copy-${app}`;
