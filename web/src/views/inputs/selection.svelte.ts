// The selected inputs: single ones by id, or all matches without some.
import { SvelteMap, SvelteSet } from 'svelte/reactivity';
import type { Input } from './calls';
import type { List } from './list.svelte';

export class Selection {
  readonly list: List;
  /** Whether all matches are selected, without those that the person deselected. */
  all = $state(false);
  #picked = new SvelteMap<string, Input>();
  #without = new SvelteSet<string>();
  #anchor = 0;

  constructor(list: List) {
    this.list = list;
  }

  get size(): number {
    return this.all ? Math.max(0, (this.list.total ?? 0) - this.#without.size) : this.#picked.size;
  }

  has(id: string): boolean {
    return this.all ? !this.#without.has(id) : this.#picked.has(id);
  }

  /** Selects or deselects one input. The next range starts at it. */
  toggle(index: number, input: Input): void {
    this.#anchor = index;
    this.#setSelected(input, !this.has(input.id));
  }

  /** Selects the range from the last toggled input to this one. */
  async range(index: number): Promise<void> {
    const [from, to] = [Math.min(this.#anchor, index), Math.max(this.#anchor, index) + 1];
    for await (const input of this.list.between(from, to)) this.#setSelected(input, true);
  }

  everything(): void {
    this.clear();
    this.all = true;
  }

  clear(): void {
    this.all = false;
    this.#picked.clear();
    this.#without.clear();
  }

  /** The singly selected inputs, with their data at the selection or the last change. With `all`, it does not contain the others. */
  get inputs(): readonly Input[] {
    return [...this.#picked.values()];
  }

  /** Applies the answers of a write to the selected inputs, by id. */
  put(changed: ReadonlyMap<string, Partial<Input>>): void {
    for (const [id, input] of this.#picked) {
      const now = changed.get(id);
      if (now) this.#picked.set(id, { ...input, ...now });
    }
  }

  /** Removes deleted inputs. */
  drop(ids: Iterable<string>): void {
    for (const id of ids) this.#picked.delete(id);
  }

  /** Returns the ids of all selected inputs. With `all`, it reads the complete list. */
  ids = (): Promise<string[]> => this.map(({ id }) => id);

  /** Returns a value of each selected input. With `all`, it reads the complete list. */
  async map<T>(read: (input: Input) => T): Promise<T[]> {
    if (!this.all) return this.inputs.map(read);
    const values: T[] = [];
    for await (const input of this.list.between(0, this.list.total ?? 0))
      if (!this.#without.has(input.id)) values.push(read(input));
    return values;
  }

  #setSelected(input: Input, isSelected: boolean): void {
    if (this.all) {
      if (isSelected) this.#without.delete(input.id);
      else this.#without.add(input.id);
    } else if (isSelected) this.#picked.set(input.id, input);
    else this.#picked.delete(input.id);
  }
}
