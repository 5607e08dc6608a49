// The queue of the pictures whose labels improve a model most. A label is stored before the next picture is shown, so all displayed labels
// are stored whenever the tab is closed.
import { createSubscriber } from 'svelte/reactivity';
import type { Schemas } from '../../api/client';
import type { Application } from '../../host/application.svelte';
import { label } from '../../host/calls';

export type Reason = Schemas['NextInput']['useful']['why'];

/** A picture to label, and the reason why it was selected. */
export type Candidate = Schemas['NextInput'];

const ahead = 20; // number of pictures in one request
const minRemaining = 5; // number of remaining pictures at which more are requested

/** The labels of a picture from this page: concepts present or absent, by id. */
export type Words = Readonly<Record<string, boolean>>;

/** The display of a queue; components that read it follow its changes. */
interface QueueState {
  readonly pictures: readonly Candidate[]; // the shown and the next ones, in this order
  readonly at: number;
  readonly labels: Readonly<Record<string, Words>>; // since the page was opened, by picture
  readonly total: number; // number of pictures in the queue when the page was opened
  readonly isRead: boolean;
  readonly busy: boolean;
  readonly failure: unknown;
}

export class Queue {
  readonly #app: Application;
  readonly #model: string;
  #state: QueueState = { pictures: [], at: 0, labels: {}, total: 0, isRead: false, busy: false, failure: undefined };
  #update = () => {};
  readonly #listen = createSubscriber((update) => {
    this.#update = update;
  });
  #order: string[] = []; // ids of the labelled pictures, the last at the end
  #pendingRequest: Promise<void> | undefined;
  #all = false; // whether the complete queue is loaded

  constructor(app: Application, model: string) {
    this.#app = app;
    this.#model = model;
  }

  get state(): QueueState {
    this.#listen();
    return this.#state;
  }

  #show(change: Partial<QueueState>): void {
    this.#state = { ...this.#state, ...change };
    this.#update();
  }

  /** The displayed picture. */
  get now(): Candidate | undefined {
    const { pictures, at } = this.state;
    return pictures[at];
  }

  /** The labels of the displayed picture. */
  get words(): Words {
    return this.state.labels[this.now?.id ?? ''] ?? {};
  }

  /** The number of labelled pictures. */
  get labelledCount(): number {
    return Object.keys(this.state.labels).length;
  }

  /** Requests pictures, and more of them when few remain. */
  more = async (): Promise<void> => {
    if (this.#all || this.#state.pictures.length - this.#state.at > minRemaining) return;
    this.#pendingRequest ??= this.#ask().finally(() => {
      this.#pendingRequest = undefined;
    });
    await this.#pendingRequest;
  };

  /** Tries again after a failure. */
  again = async (): Promise<void> => {
    this.#show({ failure: undefined });
    await this.more();
  };

  async #ask(): Promise<void> {
    // Labelled pictures have left the list, and skipped ones are still at its start.
    const passed = this.#state.pictures.filter((p) => !this.#state.labels[p.id]).length;
    try {
      if (!this.#state.isRead) await this.#app.waitForCopy();
      const answer = await this.#app.v2.GET('/models/{model_id}/next', {
        params: { path: { model_id: this.#model }, query: { page: 1, per_page: passed + ahead } },
      });
      const { pictures, isRead, total } = this.#state;
      const ids = new Set(pictures.map((p) => p.id));
      const fresh = answer.inputs.filter((input) => !ids.has(input.id));
      this.#all = answer.inputs.length < passed + ahead;
      this.#show({
        pictures: [...pictures, ...fresh],
        total: isRead ? total : answer.total,
        isRead: true,
        failure: undefined,
      });
    } catch (failure) {
      this.#show({ failure });
    }
  }

  /** Labels the displayed picture; null removes a label. Once it is stored, the next is shown, unless stay is set. */
  label(words: Readonly<Record<string, boolean | null>>, stay = false): Promise<boolean> {
    const picture = this.now;
    if (!picture) return Promise.resolve(false);
    return this.#work(async () => {
      await this.#store(picture.id, words);
      const now: Record<string, boolean> = { ...this.#state.labels[picture.id] };
      for (const [id, value] of Object.entries(words)) {
        if (value === null) delete now[id];
        else now[id] = value;
      }
      this.#note(picture.id, now);
      if (!stay) this.#show({ at: this.#state.at + 1 });
    });
  }

  /** Shows the next picture, or the one before. */
  go(delta: 1 | -1): void {
    const { busy, pictures, at } = this.#state;
    if (busy) return;
    this.#show({ at: Math.max(0, Math.min(pictures.length, at + delta)) });
    void this.more();
  }

  /** Removes the last label of a picture, and shows that picture. */
  undo(): Promise<boolean> {
    const last = this.#order.at(-1);
    if (last === undefined) return Promise.resolve(false);
    return this.#work(async () => {
      const words = Object.keys(this.#state.labels[last] ?? {}).map((id) => [id, null] as const);
      await this.#store(last, Object.fromEntries(words));
      this.#note(last, {});
      this.#show({ at: this.#state.pictures.findIndex((p) => p.id === last) });
    });
  }

  async #work(work: () => Promise<void>): Promise<boolean> {
    if (this.#state.busy) return false;
    this.#show({ busy: true, failure: undefined });
    try {
      await work();
      return true;
    } catch (failure) {
      this.#show({ failure });
      return false;
    } finally {
      this.#show({ busy: false });
      void this.more();
    }
  }

  #note(id: string, words: Words): void {
    const { [id]: _, ...others } = this.#state.labels;
    this.#order = this.#order.filter((other) => other !== id);
    const hasLabels = Object.keys(words).length > 0;
    if (hasLabels) this.#order.push(id);
    this.#show({ labels: hasLabels ? { ...others, [id]: words } : others });
  }

  #store(id: string, words: Readonly<Record<string, boolean | null>>): Promise<void> {
    return label(
      this.#app.write,
      id,
      Object.entries(words).map(([concept, value]) => ({ id: concept, value })),
    );
  }
}
