// The pictures from which a model learns most, one after another. A person's label of one is stored before the next is shown: whenever the
// tab closes, all displayed labels are stored.
import { createSubscriber } from 'svelte/reactivity';
import type { Application } from '../../application.svelte';
import type { components } from '../../v2';

type Schemas = components['schemas'];
export type Reason = 'uncertain' | 'different' | 'new';

/** A picture to label, and the reason why it was selected. */
export interface Candidate {
  readonly id: string;
  readonly input: Schemas['Input'];
  readonly useful: { readonly score: number; readonly why: Reason };
  readonly predicted: readonly { readonly id: string; readonly name: string; readonly value: number }[];
}

type Answer = {
  readonly total: number;
  readonly inputs: (Schemas['Input'] & Pick<Candidate, 'useful' | 'predicted'>)[];
};

const ahead = 20; // pictures that are asked for at once
const few = 5; // left, when more are asked for

/** The labels of a picture from this page: concepts present or absent, by id. */
export type Words = Readonly<Record<string, boolean>>;

/** The display of a queue; components that read it follow its changes. */
interface Shown {
  readonly pictures: readonly Candidate[]; // the shown and the next ones, in this order
  readonly at: number;
  readonly said: Readonly<Record<string, Words>>; // since the page was opened, by picture
  readonly total: number; // that waited when the page was opened
  readonly read: boolean;
  readonly busy: boolean;
  readonly failure: unknown;
}

export class Queue {
  readonly #app: Application;
  readonly #model: string;
  #shown: Shown = { pictures: [], at: 0, said: {}, total: 0, read: false, busy: false, failure: undefined };
  #update = () => {};
  readonly #listen = createSubscriber((update) => {
    this.#update = update;
  });
  #order: string[] = []; // of the labelled pictures, the last at the end
  #asking: Promise<void> | undefined;
  #all = false; // whether everything that waits is in pictures

  constructor(app: Application, model: string) {
    this.#app = app;
    this.#model = model;
  }

  get shown(): Shown {
    this.#listen();
    return this.#shown;
  }

  #show(change: Partial<Shown>): void {
    this.#shown = { ...this.#shown, ...change };
    this.#update();
  }

  /** The picture that is asked about. */
  get now(): Candidate | undefined {
    const { pictures, at } = this.shown;
    return pictures[at];
  }

  /** Its labels. */
  get words(): Words {
    return this.shown.said[this.now?.id ?? ''] ?? {};
  }

  /** The number of labelled pictures. */
  get done(): number {
    return Object.keys(this.shown.said).length;
  }

  /** Asks for pictures, and for more when few are left. */
  more = async (): Promise<void> => {
    if (this.#all || this.#shown.pictures.length - this.#shown.at > few) return;
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    await this.#asking;
  };

  /** Tries again after a failure. */
  again = async (): Promise<void> => {
    this.#show({ failure: undefined });
    await this.more();
  };

  async #ask(): Promise<void> {
    const path = `/models/${encodeURIComponent(this.#model)}/next`;
    // Labelled ones have left the list; skipped ones still lead it.
    const passed = this.#shown.pictures.filter((p) => !this.#shown.said[p.id]).length;
    try {
      if (!this.#shown.read) await this.#app.remembers();
      const answer = await this.#app.call<Answer>('GET', `${path}?page=1&per_page=${passed + ahead}`);
      const { pictures, read, total } = this.#shown;
      const known = new Set(pictures.map((p) => p.id));
      const fresh = answer.inputs
        .filter((input) => !known.has(input.id))
        .map((input): Candidate => ({ id: input.id, input, useful: input.useful, predicted: input.predicted }));
      this.#all = answer.inputs.length < passed + ahead;
      this.#show({
        pictures: [...pictures, ...fresh],
        total: read ? total : answer.total,
        read: true,
        failure: undefined,
      });
    } catch (failure) {
      this.#show({ failure });
    }
  }

  /** Labels the displayed picture; null removes a label. Once it is stored, the next is shown, unless stay is set. */
  say(words: Readonly<Record<string, boolean | null>>, stay = false): Promise<boolean> {
    const picture = this.now;
    if (!picture) return Promise.resolve(false);
    return this.#work(async () => {
      await this.#store(picture.id, words);
      const now: Record<string, boolean> = { ...this.#shown.said[picture.id] };
      for (const [id, value] of Object.entries(words)) {
        if (value === null) delete now[id];
        else now[id] = value;
      }
      this.#note(picture.id, now);
      if (!stay) this.#show({ at: this.#shown.at + 1 });
    });
  }

  /** Shows the next picture, or the one before. */
  go(by: 1 | -1): void {
    const { busy, pictures, at } = this.#shown;
    if (busy) return;
    this.#show({ at: Math.max(0, Math.min(pictures.length, at + by)) });
    void this.more();
  }

  /** Removes the last label of a picture, and shows that picture. */
  undo(): Promise<boolean> {
    const last = this.#order.at(-1);
    if (last === undefined) return Promise.resolve(false);
    return this.#work(async () => {
      const words = Object.keys(this.#shown.said[last] ?? {}).map((id) => [id, null] as const);
      await this.#store(last, Object.fromEntries(words));
      this.#note(last, {});
      this.#show({ at: this.#shown.pictures.findIndex((p) => p.id === last) });
    });
  }

  async #work(work: () => Promise<void>): Promise<boolean> {
    if (this.#shown.busy) return false;
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
    const { [id]: _, ...others } = this.#shown.said;
    this.#order = this.#order.filter((other) => other !== id);
    const some = Object.keys(words).length > 0;
    if (some) this.#order.push(id);
    this.#show({ said: some ? { ...others, [id]: words } : others });
  }

  async #store(id: string, words: Readonly<Record<string, boolean | null>>): Promise<void> {
    const all = Object.entries(words);
    const given = all.flatMap(([concept, value]) => (value === null ? [] : [{ id: concept, value }]));
    const taken = all.flatMap(([concept, value]) => (value === null ? [{ id: concept }] : []));
    for (const [concepts, action] of [
      [taken, 'remove'],
      [given, 'merge'],
    ] as const) {
      if (concepts.length) await this.#app.write('PATCH', '/inputs', { inputs: [{ id, data: { concepts } }], action });
    }
  }
}
