// The contents of /sync except an application's status: its newest pictures, its concepts and its models. They are read while that page is
// open, and at each change. The page works the same with a replica on this device and with an edge.

import type { V2 } from '../../api/client';
import type { Application } from '../../host/application.svelte';
import { label, ownModels } from '../../host/calls';
import { coalesce } from '../../host/coalesce';
import type { Conflict, Outbox } from '../../host/outbox.svelte';
import type { Marked, MarkKind } from '../../host/syncMarks';
import { addAgain, type Input, inForce, newest, type Operation, ownConcepts } from './calls';

const more = 24; // number of pictures that each press of "more" adds

export abstract class SyncState {
  readonly #application: Application;
  readonly #outbox: Outbox;

  inputs = $state.raw<readonly Input[]>([]); // the newest, newest first
  count = $state(0); // number of all inputs
  concepts = $state.raw<readonly { id: string; name: string }[]>([]);
  models = $state.raw<readonly { id: string; name: string }[]>([]);
  isRead = $state(false); // whether all these were read
  failure = $state.raw<unknown>();
  #limit = more;
  #names = new Map<string, string>(); // names of the displayed items by id, kept after a deletion

  constructor(application: Application, outbox: Outbox) {
    this.#application = application;
    this.#outbox = outbox;
  }

  /** Whether the host is open, so that reads work. */
  protected abstract readonly reads: boolean;
  /** The name of its host, and the texts about the operations that are pending there. */
  abstract readonly words: {
    readonly place: string;
    readonly pending: string;
    readonly safe: string;
    readonly waits: (n: string) => string; // n: formatted number of pending operations
  };
  /** Whether pending operations survive the closing of this page. */
  abstract readonly isPersistent: boolean;

  get status() {
    return this.#outbox.status;
  }
  get pending() {
    return this.#outbox.pending;
  }
  get conflicts() {
    return this.#outbox.conflicts;
  }
  get dismissed() {
    return this.#outbox.dismissed;
  }
  get syncSummary() {
    return this.#outbox.syncSummary;
  }
  get offline() {
    return this.#outbox.offline;
  }
  inForce = (c: Conflict) => inForce(this.#outbox.v2, c);
  dismiss = (c: Conflict) => this.#outbox.dismiss(c);
  address = (path: string) => this.#application.address(path);

  /** Returns the mark of a thing, as the application does. */
  markOf(what: Marked, id: string): MarkKind | undefined {
    return this.#application.markOf(what, id);
  }

  /** Returns the name of an operation's subject. */
  nameOf(o: Operation): string {
    const id = o.input_id ?? o.model_id ?? o.concept_id ?? '';
    return this.nameOfId(id) ?? o.content.name ?? id;
  }

  /** Returns the name of an item; undefined if it was never displayed. */
  nameOfId = (id: string): string | undefined => this.#names.get(id);

  /** Reads everything that is shown. Pending operations are read after their subjects, so that nothing new looks confirmed. */
  refresh = coalesce(async () => {
    if (!this.reads) return; // it is not open
    try {
      const { v2 } = this.#outbox;
      const { all, inputs } = await newest(v2, this.#limit);
      const concepts = await ownConcepts(v2, this.#application.id);
      const models = await ownModels({ id: this.#application.id, v2 });
      await this.#outbox.refresh();
      for (const one of [...models, ...concepts, ...inputs]) if (one.name) this.#names.set(one.id, one.name);
      Object.assign(this, { count: all, inputs, concepts, models, failure: this.#outbox.failure });
      this.isRead = true;
    } catch (failure) {
      if (this.reads && this.status?.phase !== 'purged') this.failure = failure;
    }
  });

  /** Shows further, older pictures. */
  async older(): Promise<void> {
    this.#limit += more;
    await this.refresh();
  }

  /** Runs writes at the host, and then reads and shows the results. */
  async write(work: (v2: V2) => Promise<unknown>): Promise<void> {
    try {
      await work(this.#outbox.v2);
    } finally {
      await this.refresh();
      this.#application.changes++;
    }
  }

  /** Repeats a conflict's operation as a new write; undefined if its subject no longer exists. */
  again(c: Conflict): ((v2: V2) => Promise<unknown>) | undefined {
    const { kind, input_id, concept_id, content } = c;
    const { name, concepts } = content;
    if (kind === 'input_create' && content.hosted) return (v2) => addAgain(v2, this.#outbox.ask, content, freshId());
    if (kind === 'concept_name' && concept_id && name)
      return (v2) => v2.PATCH('/concepts', { body: { concepts: [{ id: concept_id, name }], action: 'overwrite' } });
    if (!input_id || c.verdict === 'gone') return undefined;
    const labels = concepts?.map(({ id, value }) => ({ id, value: value === null ? null : Boolean(value) }));
    if (kind === 'input_labels' && labels) return (v2) => label(v2, input_id, labels);
    if (kind === 'input_delete') return (v2) => v2.DELETE('/inputs/{input_id}', { params: { path: { input_id } } });
    return undefined;
  }
}

/** Returns a unique id. */
export function freshId(): string {
  return crypto.randomUUID().replaceAll('-', '');
}
