// The list of pictures through which a person moves: those of the application, newest first, or the hits of a search. It is read in pages,
// so that a list of 100,000 pictures is as fast as one of ten.

import type { Schemas } from '../../api/client';
import { type Clause, ranks } from '../../clauses/clause';
import { ready } from '../../clauses/pictures';
import { toQuery } from '../../clauses/query';
import type { Application } from '../../host/application.svelte';
import { countInputs } from '../../host/calls';
import { matching } from '../inputs/calls';

/** A picture of the list. */
export interface Entry {
  readonly id: string;
  readonly created: string;
}

/** The position of a picture in its list: its place, the number of pictures, and its neighbours. */
export interface Position {
  readonly id: string;
  readonly at: number; // index in the list, from 0
  readonly total: number;
  readonly before: Entry | undefined;
  readonly after: Entry | undefined;
}

const page = 100;
const furthest = 50; // maximum number of pages to search for a picture whose position is unknown

export class List {
  readonly #app: Application;
  readonly #clauses: readonly Clause[];
  readonly #ranks: boolean; // the list is sorted by score; otherwise by creation, newest first
  #total: number | undefined;
  #pages = new Map<number, Promise<Entry[]>>(); // by the API's page numbers, from 1

  /** Without clauses, the list contains all pictures. */
  constructor(app: Application, clauses: readonly Clause[]) {
    this.#app = app;
    this.#clauses = clauses;
    this.#ranks = clauses.some(ranks);
  }

  /** Returns the position of a picture; undefined if it is not in the list. hint: its probable index. */
  async positionOf(id: string, hint: number | undefined): Promise<Position | undefined> {
    const total = await this.#count();
    const at = await this.#find(id, hint, total);
    if (at === undefined) return undefined;
    const [before, after] = await Promise.all([this.#entry(at - 1), this.#entry(at + 1)]);
    return { id, at, total, before, after };
  }

  async #count(): Promise<number> {
    if (this.#total === undefined) {
      await ready(this.#clauses);
      this.#total = this.#clauses.length
        ? await matching(this.#app, this.#clauses)
        : (await countInputs(this.#app.v2)).all;
    }
    return this.#total;
  }

  async #find(id: string, hint: number | undefined, total: number): Promise<number | undefined> {
    for (const at of hint === undefined ? [] : [hint, hint + 1, hint - 1]) {
      if ((await this.#entry(at))?.id === id) return at;
    }
    const foundPosition = this.#ranks ? undefined : await this.#between(id, total);
    if (foundPosition !== undefined) return foundPosition;
    const pages = Math.ceil(total / page);
    for (let n = 0; n < Math.min(pages, furthest); n++) {
      const number = this.#ranks ? n + 1 : pages - n;
      const found = (await this.#read(number)).findIndex((entry) => entry.id === id);
      if (found >= 0) return this.#turn((number - 1) * page + found);
    }
    return undefined;
  }

  /** Returns the index of a picture by a binary search for its creation time, in a list that is sorted by creation. */
  async #between(id: string, total: number): Promise<number | undefined> {
    const { input } = await this.#app.v2.GET('/inputs/{input_id}', { params: { path: { input_id: id } } });
    let [low, high] = [1, Math.ceil(total / page)];
    while (low <= high) {
      const middle = (low + high) >> 1;
      const entries = await this.#read(middle);
      const found = entries.findIndex((entry) => entry.id === id);
      if (found >= 0) return this.#turn((middle - 1) * page + found);
      if ((entries[0]?.created ?? '~') > input.created_at) high = middle - 1;
      else low = middle + 1;
    }
    return undefined;
  }

  /** Converts an index in the API's order into one in the displayed order, or back. */
  #turn(at: number): number {
    return this.#ranks ? at : (this.#total ?? 0) - 1 - at;
  }

  async #entry(at: number): Promise<Entry | undefined> {
    if (at < 0 || at >= (await this.#count())) return undefined;
    const place = this.#turn(at);
    return (await this.#read(Math.floor(place / page) + 1))[place % page];
  }

  #read(number: number): Promise<Entry[]> {
    let entries = this.#pages.get(number);
    if (!entries) {
      entries = this.#ask(number);
      this.#pages.set(number, entries);
      entries.catch(() => this.#pages.delete(number));
    }
    return entries;
  }

  async #ask(number: number): Promise<Entry[]> {
    const pagination = { page: number, per_page: page };
    const entry = ({ id, created_at: created }: Schemas['Input']) => ({ id, created });
    if (!this.#clauses.length)
      return (await this.#app.v2.GET('/inputs', { params: { query: pagination } })).inputs.map(entry);
    await ready(this.#clauses);
    const { hits } = await this.#app.v2.POST('/searches', { body: { query: toQuery(this.#clauses), pagination } });
    return hits.map(({ input }) => entry(input));
  }
}
