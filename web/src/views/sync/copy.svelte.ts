// What /sync shows of an application's copy beside where it stands: its newest pictures, its concepts and models. They
// are read while that page is open, and at each change of the copy.
import type { Application } from '../../application.svelte';
import { pageToken } from '../../console';
import type { Copy as Open } from '../../copy.svelte';
import type { Mark } from '../../marks';
import type { Conflict, Content, Operation } from '../../operations';
import { inRounds } from '../../rounds';
import type { Picture } from '../look/pictures';
import { Calls, type Input, type Model } from './calls';
import { type Digest, originDigest } from './digest';

const more = 24; // pictures that are shown more, each time

export class Copy {
  readonly open: Open;
  readonly calls: Calls;
  readonly #application: Application;

  inputs = $state.raw<readonly Input[]>([]); // the newest, newest first
  count = $state(0); // of all inputs
  concepts = $state.raw<readonly { id: string; name: string }[]>([]);
  models = $state.raw<readonly Model[]>([]);
  read = $state(false); // whether all these were read
  failure = $state.raw<unknown>();
  #most = more;
  #names = new Map<string, string>(); // of what was seen here, by id: what is gone keeps its name

  constructor(application: Application, open: Open) {
    this.#application = application;
    this.open = open;
    this.calls = new Calls(open.device.ask, open.app.id);
  }

  get app() {
    return this.open.app;
  }
  get device() {
    return this.open.device;
  }
  get status() {
    return this.open.status;
  }
  get waiting() {
    return this.open.waiting;
  }
  get conflicts() {
    return this.open.conflicts;
  }
  get agreed() {
    return this.open.agreed;
  }
  get marks() {
    return this.open.marks;
  }
  get truth() {
    return this.open.truth;
  }
  get offline() {
    return this.open.offline;
  }
  get away() {
    return this.open.away;
  }
  setAway = (away: boolean) => this.open.setAway(away);
  agree = (c: Conflict) => this.open.agree(c);
  address = (path: string) => this.#application.address(path);

  /** An input's mark: confirmed is what neither waits nor was decided otherwise, as the log said. */
  markOf(input: Input): Mark {
    return this.marks.inputs.get(input.id) ?? 'confirmed';
  }

  /** What the thing is called that an operation is about. */
  nameOf(o: Operation): string {
    const id = o.input_id ?? o.model_id ?? o.concept_id ?? '';
    return this.#names.get(id) ?? o.content?.name ?? id;
  }

  /** Reads everything that is shown. What waits is read after what it is about, so that nothing that was just written looks confirmed. */
  refresh = inRounds(async () => {
    if (!this.device.client) return; // it is not open yet, or no more
    try {
      const { all, inputs } = await this.calls.newest(this.#most);
      const concepts = await this.calls.concepts();
      const models = await this.calls.models();
      await this.open.refresh();
      for (const one of [...models, ...concepts, ...inputs]) if (one.name) this.#names.set(one.id, one.name);
      Object.assign(this, { count: all, inputs, concepts, models, failure: this.open.failure });
      this.read = true;
    } catch (failure) {
      if (this.device.client && this.status?.phase !== 'purged') this.failure = failure;
    }
  });

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
      this.#application.changes++;
    }
  }

  add = (p: Picture) => this.write((calls) => calls.add(p));

  /** The digests of the copy's state and of the origin's. */
  async digests(): Promise<[Digest, Digest]> {
    return [await this.open.digest(), await originDigest(this.app.id, (await pageToken(this.app.id)).token)];
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
