// The calls of /v2 by the page of inputs. The host is the origin, an edge, or the replica on this device.

import type { Fetch } from '../../apiCall';
import type { Application } from '../../application.svelte';
import { type Clause, toQuery } from '../../clauses';
import { Failure } from '../../console';
import type { components } from '../../v2';

type Schemas = components['schemas'];
export type Input = Schemas['Input'];

/** The numbers of inputs, by the state of their pictures. */
export type Counts = Schemas['Counts'];

/** An input of a list, with its score if the list is ranked. */
export interface ListedInput {
  readonly input: Input;
  readonly score?: number;
}

/** A day in the reader's time zone, and the number of inputs that were created on it. */
export interface Day {
  readonly day: string; // "2026-11-21"
  readonly count: number;
}

/** The result of one input of a write. */
export interface Item {
  readonly id: string;
  readonly data?: Schemas['InputData'];
  readonly created_at?: string;
  readonly status: { readonly code: number; readonly description: string; readonly details?: string };
}

/** The maximum number of inputs that one call writes. */
export const mostInputs = 128;
export const ready = 30000;
export const pending = 30001;
const modified = 30200;

/** Reports whether a write changed an input. */
export const isDone = ({ status }: Item): boolean => [ready, pending, modified].includes(status.code);

/** Makes a call. It accepts an answer with a result for each input, even if all of them failed. */
async function tolerant<T extends object>(ask: Fetch, method: string, path: string, body?: object): Promise<T> {
  let response: Response;
  try {
    response = await ask(`/v2${path}`, {
      method,
      ...(body && { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } }),
    });
  } catch (failure) {
    if (failure instanceof TypeError) throw new Failure(0); // fetch throws a TypeError if no server answers
    throw failure;
  }
  const answer = await response.json().catch(() => ({}));
  const status = answer.status ?? {};
  const hasItems = Array.isArray(answer.inputs) && (response.ok || answer.inputs.length > 0);
  if (hasItems || (response.ok && status.code === 10000)) return answer as T;
  throw new Failure(response.status, status, response);
}

/** Lists a page of the matches of clauses, ranked or in the order of creation. Without clauses, all inputs match. n: from 1. */
export async function page(
  app: Application,
  clauses: readonly Clause[],
  n: number,
  size: number,
): Promise<ListedInput[]> {
  if (!clauses.length) {
    const answer = await tolerant<Schemas['InputsAnswer']>(app.ask, 'GET', `/inputs?page=${n}&per_page=${size}`);
    return (answer.inputs ?? []).map((input) => ({ input }));
  }
  const answer = await app.call<Schemas['HitsAnswer']>('POST', '/searches', {
    query: toQuery(clauses),
    pagination: { page: n, per_page: size },
  });
  return (answer.hits ?? []).map(({ input, score }) => ({ input: input as Input, score }));
}

/** Returns the number of inputs that match clauses, and the days of their creation, newest first. */
export async function summary(
  app: Application,
  clauses: readonly Clause[],
): Promise<{ matching: number; days: Day[] }> {
  const { summary } = await app.call<{ summary: { matching: number; days?: Day[] } }>('POST', '/searches/summary', {
    query: toQuery(clauses),
    summary: { days: { utc_offset: -new Date().getTimezoneOffset() } },
  });
  return { matching: summary.matching, days: summary.days ?? [] };
}

/** Returns the number of inputs that match clauses. */
export async function matching(app: Application, clauses: readonly Clause[]): Promise<number> {
  const { summary } = await app.call<{ summary: { matching: number } }>('POST', '/searches/summary', {
    query: toQuery(clauses),
    summary: {},
  });
  return summary.matching;
}

/** Returns the numbers of inputs in the application, by state. */
export async function counts(app: Application): Promise<Counts> {
  return (await app.call<Schemas['CountsAnswer']>('GET', '/inputs/status')).counts;
}

/** A change of an input, with its id. */
export type Change = { readonly id: string; readonly data: object };

/** Changes up to 128 inputs, and returns the result of each. */
export async function patch(
  app: Application,
  action: 'merge' | 'remove' | 'overwrite',
  inputs: readonly Change[],
): Promise<Item[]> {
  const { inputs: items } = await tolerant<{ inputs: Item[] }>(app.send, 'PATCH', '/inputs', { action, inputs });
  return items;
}

/** Adds up to 128 inputs, and returns the result of each. */
export async function add(app: Application, inputs: readonly object[]): Promise<Item[]> {
  const { inputs: items } = await tolerant<{ inputs: Item[] }>(app.send, 'POST', '/inputs', { inputs });
  return items;
}

/** Lists the SHA-256 of each stored picture by the ID of its input, with a number of inputs a call. */
export const hashes = {
  rows: 1000,
  async list(app: Application): Promise<Map<string, string>> {
    const all = new Map<string, string>();
    for (let [n, rows] = [1, hashes.rows]; ; n++) {
      let inputs: Input[];
      try {
        ({ inputs = [] } = await tolerant<{ inputs: Input[] }>(
          app.ask,
          'GET',
          `/inputs?show=sha256&page=${n}&per_page=${rows}`,
        ));
      } catch (failure) {
        if (!(failure instanceof Failure) || failure.status !== 400 || rows % 2) throw failure;
        [n, rows] = [2 * (n - 1), rows / 2]; // the answer would be too large
        continue;
      }
      for (const input of inputs) if (input.status.code === ready) all.set(input.id, input.data?.image.sha256 ?? '');
      if (inputs.length < rows) return all;
    }
  },
};

/** Returns the SHA-256 of the stored picture of an input, or "" if it has none. */
export async function hashOf(app: Application, id: string): Promise<string> {
  const { input } = await app.call<Schemas['InputAnswer']>('GET', `/inputs/${encodeURIComponent(id)}?show=sha256`);
  return input.data.image.sha256 ?? '';
}

/** Deletes up to 128 inputs permanently. */
export async function remove(app: Application, ids: readonly string[]): Promise<void> {
  await app.write('DELETE', '/inputs', { ids });
}

/** A concept that can be a label of an input. */
export interface NamedConcept {
  readonly id: string;
  readonly name: string;
  readonly own: boolean; // custom, not a concept of the general model
}

/** Lists concepts whose names begin with a text, in a language. Custom concepts come first. */
export async function concepts(
  app: Application,
  prefix: string,
  language: string,
  limit: number,
): Promise<NamedConcept[]> {
  const { concepts: found } = await app.call<Schemas['ConceptsAnswer']>(
    'POST',
    `/concepts/searches?per_page=${limit}`,
    {
      concept_query: { name: `${prefix.replaceAll('*', '')}*`, language },
    },
  );
  return (found ?? []).map(({ id, name, app_id }) => ({ id, name: name || id, own: app_id === app.id }));
}

/** Creates a custom concept with a name. */
export async function newConcept(app: Application, name: string): Promise<NamedConcept> {
  await app.write('POST', '/concepts', { concepts: [{ id: name, name }] });
  return { id: name, name, own: true };
}

/** Returns the custom models of the application, with the ids of their concepts. */
export async function models(app: Application): Promise<{ id: string; name: string; concepts: string[] }[]> {
  const { models: all } = await app.call<Schemas['ModelsAnswer']>('GET', '/models?per_page=200');
  const own = (all ?? []).filter((model) => model.app_id === app.id);
  return Promise.all(
    own.map(async ({ id = '', name = '' }) => {
      type Info = { model: { output_info?: { data?: { concepts?: { id: string }[] } } } };
      const { model } = await app.call<Info>('GET', `/models/${encodeURIComponent(id)}/output_info`);
      return { id, name, concepts: (model.output_info?.data?.concepts ?? []).map((c) => c.id) };
    }),
  );
}
