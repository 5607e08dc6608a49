// What /sync shows of an application beside where it stands: its newest pictures, its concepts and models. They are read
// while that page is open, and at each change. It is the same of a copy on this device and of an edge.
import type { Application } from '../../application.svelte';
import type { Mark } from '../../marks';
import type { Conflict, Content, Operation } from '../../operations';
import type { Outbox } from '../../outbox.svelte';
import { inRounds } from '../../rounds';
import { Calls, type Input, type Model } from './calls';

const more = 24; // pictures that are shown more, each time

export abstract class Ledger {
  readonly calls: Calls;
  readonly #application: Application;
  readonly #outbox: Outbox;

  inputs = $state.raw<readonly Input[]>([]); // the newest, newest first
  count = $state(0); // of all inputs
  concepts = $state.raw<readonly { id: string; name: string }[]>([]);
  models = $state.raw<readonly Model[]>([]);
  read = $state(false); // whether all these were read
  failure = $state.raw<unknown>();
  #most = more;
  #names = new Map<string, string>(); // of what was seen here, by id: what is gone keeps its name

  constructor(application: Application, outbox: Outbox) {
    this.#application = application;
    this.#outbox = outbox;
    this.calls = new Calls(outbox.ask, application.id);
  }

  /** Whether it can be read. */
  protected abstract readonly reads: boolean;
  /** What its place is called, and what is said of what waits there. */
  abstract readonly words: { readonly place: string; readonly waiting: string; readonly safe: string };
  /** Whether what waits outlives this page. */
  abstract readonly keeps: boolean;

  get status() {
    return this.#outbox.status;
  }
  get waiting() {
    return this.#outbox.waiting;
  }
  get conflicts() {
    return this.#outbox.conflicts;
  }
  get agreed() {
    return this.#outbox.agreed;
  }
  get marks() {
    return this.#outbox.marks;
  }
  get truth() {
    return this.#outbox.truth;
  }
  get offline() {
    return this.#outbox.offline;
  }
  agree = (c: Conflict) => this.#outbox.agree(c);
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
    if (!this.reads) return; // it is not open yet, or no more
    try {
      const { all, inputs } = await this.calls.newest(this.#most);
      const concepts = await this.calls.concepts();
      const models = await this.calls.models();
      await this.#outbox.refresh();
      for (const one of [...models, ...concepts, ...inputs]) if (one.name) this.#names.set(one.id, one.name);
      Object.assign(this, { count: all, inputs, concepts, models, failure: this.#outbox.failure });
      this.read = true;
    } catch (failure) {
      if (this.reads && this.status?.phase !== 'purged') this.failure = failure;
    }
  });

  /** Shows more of the older pictures. */
  async older(): Promise<void> {
    this.#most += more;
    await this.refresh();
  }

  /** Does something there, and shows what it has come to. */
  async write(work: (calls: Calls) => Promise<void>): Promise<void> {
    try {
      await work(this.calls);
    } finally {
      await this.refresh();
      this.#application.changes++;
    }
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

/** An id that nothing else has. */
export function freshId(): string {
  return crypto.randomUUID().replaceAll('-', '');
}

/** The path of the picture that an operation brought. */
export function pathOf(content: Content): string {
  return content.hosted ? new URL(content.hosted, 'http://here').pathname : '';
}
