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

export class BulkEdit {
  readonly app: Application;
  list: List;
  selection: Selection;
  /** The running job, or the last one. */
  job = $state.raw<Job>();
  /** The ids of inputs whose deletion is still undoable. The pages show them as being deleted. */
  readonly going = new SvelteSet<string>();

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
  label(name: string, concept: string, value: 1 | 0 | null): Promise<void> {
    const change = value === null ? { id: concept } : { id: concept, value };
    return this.#write(name, value === null ? 'remove' : 'merge', { concepts: [change] });
  }

  /** Writes metadata of all selected inputs. merge adds the members, and overwrite replaces all metadata. */
  describe(name: string, metadata: unknown, action: 'merge' | 'overwrite'): Promise<void> {
    return this.#write(name, action, { metadata });
  }

  /** Sets the place of all selected inputs. at: undefined removes their places. */
  place(name: string, at: { latitude: number; longitude: number } | undefined): Promise<void> {
    const point = { geo_point: at ?? { latitude: 0, longitude: 0 } };
    return this.#write(name, at ? 'overwrite' : 'remove', { geo: point });
  }

  async #write(name: string, action: 'merge' | 'remove' | 'overwrite', data: Change['data']): Promise<void> {
    const ids = await this.selection.ids();
    const job = new Job(name, ids.length);
    this.job = job;
    await job.run(ids, async (batch) =>
      this.#applyChanges(
        await patch(
          this.app,
          action,
          batch.map((id): Change => ({ id, data })),
        ),
      ),
    );
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
