// Which inputs are selected: some by their ids, or all that match but some.
import { SvelteMap, SvelteSet } from 'svelte/reactivity';
import type { Input } from './calls';
import type { List } from './list.svelte';

export class Selection {
  readonly list: List;
  /** All that match are selected, without those that were taken out. */
  all = $state(false);
  #some = new SvelteMap<string, Input>();
  #without = new SvelteSet<string>();
  #anchor = 0;

  constructor(list: List) {
    this.list = list;
  }

  get size(): number {
    return this.all ? Math.max(0, (this.list.total ?? 0) - this.#without.size) : this.#some.size;
  }

  has(id: string): boolean {
    return this.all ? !this.#without.has(id) : this.#some.has(id);
  }

  /** Turns one round; ranges begin at it. */
  toggle(index: number, input: Input): void {
    this.#anchor = index;
    this.#put(input, !this.has(input.id));
  }

  /** Selects everything from the one that was touched last to this one. */
  async range(index: number): Promise<void> {
    const [from, to] = [Math.min(this.#anchor, index), Math.max(this.#anchor, index) + 1];
    for await (const input of this.list.between(from, to)) this.#put(input, true);
  }

  everything(): void {
    this.clear();
    this.all = true;
  }

  clear(): void {
    this.all = false;
    this.#some.clear();
    this.#without.clear();
  }

  /** The inputs, as they were when they were selected or seen last; without those of "all". */
  get inputs(): readonly Input[] {
    return [...this.#some.values()];
  }

  /** Takes over what a write has answered with. */
  put(changed: ReadonlyMap<string, Partial<Input>>): void {
    for (const [id, input] of this.#some) {
      const now = changed.get(id);
      if (now) this.#some.set(id, { ...input, ...now });
    }
  }

  /** Removes deleted inputs. */
  drop(ids: Iterable<string>): void {
    for (const id of ids) this.#some.delete(id);
  }

  /** The ids of all that are selected: read from the list where it is all that match. */
  async ids(): Promise<string[]> {
    if (!this.all) return [...this.#some.keys()];
    const ids: string[] = [];
    for await (const { id } of this.list.between(0, this.list.total ?? 0)) if (!this.#without.has(id)) ids.push(id);
    return ids;
  }

  #put(input: Input, on: boolean): void {
    if (this.all) {
      if (on) this.#without.delete(input.id);
      else this.#without.add(input.id);
    } else if (on) this.#some.set(input.id, input);
    else this.#some.delete(input.id);
  }
}
