// Changes many inputs: labels, metadata, places, deletions and retries, in steps of at most 128. A change is shown as done only after the
// replica or the origin has acknowledged it.
import { SvelteSet } from 'svelte/reactivity';
import type { Clause } from '../../clauses';
import type { Application } from '../../host/application.svelte';
import { retryQueue } from './again';
import { add, type Change, type Input, type Item, isDone, patch, remove } from './calls';
import { Job } from './job.svelte';
import { List } from './list.svelte';
import { Selection } from './selection.svelte';

/** The time in milliseconds during which a person can undo a deletion. */
export const undoMillis = 10_000;

/** A label: present, absent, or none. */
type LabelValue = 1 | 0 | null;

const labelData = (id: string, value: LabelValue): Change['data'] => ({
  concepts: [value === null ? { id } : { id, value }],
});

function labelIn(data: Input['data'], concept: string): LabelValue {
  const label = data.concepts?.find(({ id }) => id === concept);
  return label ? (label.value === 0 ? 0 : 1) : null;
}

export class BulkEdit {
  readonly app: Application;
  list: List;
  selection: Selection;
  /** The running job, or the last one. */
  job = $state.raw<Job>();
  /** The ids of inputs whose deletion is still undoable. The pages show them as being deleted. */
  readonly going = new SvelteSet<string>();
  #lastLabelling = $state.raw<{ concept: string; labels: readonly { id: string; value: LabelValue }[] }>(); // labels: before it

  constructor(app: Application) {
    this.app = app;
    const list = new List(app, []);
    this.list = $state.raw(list);
    this.selection = $state.raw(new Selection(list));
  }

  /** Shows the matches of clauses and clears the selection. If the clauses are the same as before, it only reloads the list. */
  ask(clauses: readonly Clause[]): void {
    if (JSON.stringify(clauses) !== JSON.stringify(this.list.clauses)) {
      this.list.close();
      this.list = new List(this.app, clauses);
      this.selection = new Selection(this.list);
    }
    void this.list.reload();
  }

  /** Labels all selected inputs with a concept as present (1) or absent (0), or removes the label (null). name: the name of the job. */
  async label(name: string, concept: string, value: LabelValue): Promise<void> {
    const before = await this.selection.map(({ id, data }) => ({ id, value: labelIn(data, concept) }));
    const written = new Set<string>();
    this.#lastLabelling = undefined;
    try {
      const changes = before.map(({ id }) => ({ id, data: labelData(concept, value) }));
      await this.#write(name, value === null ? 'remove' : 'merge', changes, written);
    } finally {
      const labels = before.filter(({ id, value: was }) => written.has(id) && was !== value);
      if (labels.length) this.#lastLabelling = { concept, labels };
    }
  }

  /** Whether there is a labelling to undo. */
  get canUndoLabelling(): boolean {
    return this.#lastLabelling !== undefined;
  }

  /** Undoes the last labelling of this page: each input gets its earlier label. name: the name of the job. */
  async undoLabelling(name: string): Promise<void> {
    const { concept, labels } = this.#lastLabelling ?? { concept: '', labels: [] };
    this.#lastLabelling = undefined;
    for (const action of ['remove', 'merge'] as const) {
      const of = labels.filter(({ value }) => (value === null) === (action === 'remove'));
      const changes = of.map(({ id, value }) => ({ id, data: labelData(concept, value) }));
      if (changes.length) await this.#write(name, action, changes);
    }
  }

  /** Writes metadata of all selected inputs. merge adds the members, and overwrite replaces all metadata. */
  async describe(name: string, metadata: unknown, action: 'merge' | 'overwrite'): Promise<void> {
    await this.#write(name, action, await this.selection.map(({ id }) => ({ id, data: { metadata } })));
  }

  /** Sets the place of all selected inputs. at: undefined removes their places. */
  async place(name: string, at: { latitude: number; longitude: number } | undefined): Promise<void> {
    const geo = { geo_point: at ?? { latitude: 0, longitude: 0 } };
    await this.#write(name, at ? 'overwrite' : 'remove', await this.selection.map(({ id }) => ({ id, data: { geo } })));
  }

  /** Writes changes, and adds the ids of the changed inputs to `written`. */
  async #write(
    name: string,
    action: 'merge' | 'remove' | 'overwrite',
    changes: readonly Change[],
    written = new Set<string>(),
  ): Promise<void> {
    const job = new Job(name, changes.length);
    this.job = job;
    await job.run(changes, async (batch) => {
      const items = this.#applyChanges(await patch(this.app, action, batch));
      for (const item of items) if (isDone(item)) written.add(item.id);
      return items;
    });
    if (!job.failedItems.length && job.failure === undefined) this.job = undefined;
    job.check();
  }

  #applyChanges(items: readonly Item[]): readonly Item[] {
    const changed = new Map(
      items.flatMap((i): [string, Partial<Input>][] => (isDone(i) && i.data ? [[i.id, { data: i.data }]] : [])),
    );
    this.list.put(changed);
    this.selection.put(changed);
    return items;
  }

  /**
   * Deletes inputs when the time to undo it is over, and returns the function that undoes it. If the person closes the page before, nothing
   * is deleted. name: the name of the job.
   */
  delete(name: string, ids: readonly string[]): () => void {
    for (const id of ids) this.going.add(id);
    const timer = setTimeout(() => void this.#remove(name, ids), undoMillis);
    return () => {
      clearTimeout(timer);
      for (const id of ids) this.going.delete(id);
    };
  }

  async #remove(name: string, ids: readonly string[]): Promise<void> {
    const job = new Job(name, ids.length);
    this.job = job;
    await job.run(ids, async (batch) => {
      await remove(this.app, batch);
      this.selection.drop(batch);
      return [];
    });
    await this.list.reload();
    for (const id of ids) this.going.delete(id);
    if (job.failure === undefined) this.job = undefined;
  }

  /** Adds a failed input again, with the same id and data. */
  async retry(input: Input): Promise<void> {
    retryQueue(this.app.id, (all) => [...all.filter(({ id }) => id !== input.id), input]);
    await this.resume();
  }

  /** Continues the additions that were interrupted when the page was closed. */
  async resume(): Promise<void> {
    for (const { id, data } of retryQueue(this.app.id)) {
      const image = { ...data.image, allow_duplicate_url: true };
      const concepts = data.concepts?.map((c) => ({ id: c.id, value: c.value !== 0 }));
      await remove(this.app, [id]);
      const [item] = await add(this.app, [{ id, data: { ...data, image, concepts } }]);
      retryQueue(this.app.id, (all) => all.filter((one) => one.id !== id));
      if (item && !isDone(item)) this.#showRefusal(item);
    }
    await this.list.reload();
  }

  #showRefusal(item: Item): void {
    const job = new Job(item.id, 1);
    [job.done, job.failedItems, job.ended] = [1, [item], true];
    this.job = job;
  }
}
