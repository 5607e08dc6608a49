// The calls of /v2 by the page of inputs. The host is the origin, an edge, or the replica on this device.

import type { Schemas } from '../../api/client';
import { Failure } from '../../api/console';
import { type Clause, toQuery } from '../../clauses';
import type { Application } from '../../host/application.svelte';
import { findConcepts, type NamedConcept, ownModels } from '../../host/calls';
import type { LanguageCode } from '../../i18n/languages';

export type Input = Schemas['Input'];

/** An input of a list, with its score if the list is ranked. */
export interface ListedInput {
  readonly input: Input;
  readonly score?: number;
}

/** A day in the reader's time zone, and the number of inputs that were created on it. */
export type Day = NonNullable<Schemas['Summary']['days']>[number];

/** The result of one input of a write. */
export type Item = Schemas['InputItem'];

/** The maximum number of inputs that one call writes. */
export const mostInputs = 128;
export const ready = 30000;
export const pending = 30001;
const modified = 30200;

/** Reports whether a write changed an input. */
export const isDone = ({ status }: Item): boolean => [ready, pending, modified].includes(status.code);

/** Lists a page of the matches of clauses, ranked or in the order of creation. Without clauses, all inputs match. n: from 1. */
export async function page(
  app: Application,
  clauses: readonly Clause[],
  n: number,
  size: number,
): Promise<readonly ListedInput[]> {
  const pagination = { page: n, per_page: size };
  if (clauses.length) return (await app.v2.POST('/searches', { body: { query: toQuery(clauses), pagination } })).hits;
  const { inputs } = await app.v2.GET('/inputs', { params: { query: pagination }, each: true });
  return inputs.map((input) => ({ input }));
}

/** Returns the number of inputs that match clauses, and the days of their creation, newest first. */
export async function summary(app: Application, clauses: readonly Clause[]): Promise<Schemas['Summary']> {
  const days = { utc_offset: -new Date().getTimezoneOffset() };
  return (await app.v2.POST('/searches/summary', { body: { query: toQuery(clauses), summary: { days } } })).summary;
}

/** Returns the number of inputs that match clauses. */
export async function matching(app: Application, clauses: readonly Clause[]): Promise<number> {
  return (await app.v2.POST('/searches/summary', { body: { query: toQuery(clauses) } })).summary.matching;
}

/** Returns the clause whose removal gives the most matches, and their number; undefined if no search without one of the clauses has any. */
export async function clauseToRemove(app: Application, clauses: readonly Clause[]) {
  const without = (clause: Clause) => clauses.filter((c) => c !== clause);
  const all = clauses.map(async (clause) => ({ clause, count: await matching(app, without(clause)) }));
  return (await Promise.all(all)).filter(({ count }) => count > 0).sort((a, b) => b.count - a.count)[0];
}

/** A change of an input, with its id. */
export type Change = Schemas['PatchInputs']['inputs'][number];

/** Changes up to 128 inputs, and returns the result of each. */
export async function patch(
  app: Application,
  action: 'merge' | 'remove' | 'overwrite',
  inputs: readonly Change[],
): Promise<readonly Item[]> {
  return (await app.write.PATCH('/inputs', { body: { action, inputs }, each: true })).inputs;
}

/** Adds up to 128 inputs, and returns the result of each. */
export async function add(app: Application, inputs: readonly Schemas['NewInput'][]): Promise<readonly Item[]> {
  return (await app.write.POST('/inputs', { body: { inputs }, each: true })).inputs;
}

/** Lists the SHA-256 of each stored picture by the ID of its input, with a number of inputs a call. */
export const hashes = {
  rows: 1000,
  async list(app: Application): Promise<Map<string, string>> {
    const all = new Map<string, string>();
    for (let [n, rows] = [1, hashes.rows]; ; n++) {
      let inputs: readonly Input[];
      try {
        const query = { show: ['sha256'], page: n, per_page: rows } as const;
        ({ inputs } = await app.v2.GET('/inputs', { params: { query }, each: true }));
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
  const params = { path: { input_id: id }, query: { show: ['sha256'] } } as const;
  const { input } = await app.v2.GET('/inputs/{input_id}', { params });
  return input.data.image.sha256 ?? '';
}

/** Reports whether the host knows an input, also one that was deleted. */
export async function isKnown(app: Application, id: string): Promise<boolean> {
  const params = { path: { input_id: id } };
  const finds = async (call: () => Promise<boolean>) => {
    try {
      return await call();
    } catch (failure) {
      if (failure instanceof Failure && failure.status === 404) return false;
      throw failure;
    }
  };
  if (await finds(() => app.v2.GET('/inputs/{input_id}', { params }).then(() => true))) return true;
  return finds(async () => (await app.v2.GET('/inputs/{input_id}/history', { params })).operations.length > 0);
}

/** Deletes up to 128 inputs permanently. */
export async function remove(app: Application, ids: readonly string[]): Promise<void> {
  await app.write.DELETE('/inputs', { body: { ids } });
}

/** Lists concepts whose names begin with a text, in a language. Custom concepts come first. */
export const concepts = (app: Application, prefix: string, language: LanguageCode, limit: number) =>
  findConcepts(app, `${prefix.replaceAll('*', '')}*`, limit, language);

/** Creates a custom concept with a name. */
export async function newConcept(app: Application, name: string): Promise<NamedConcept> {
  await app.write.POST('/concepts', { body: { concepts: [{ id: name, name }] } });
  return { id: name, name, own: true };
}

/** Returns the custom models of the application, with the ids of their concepts. */
export async function models(app: Application): Promise<{ id: string; name: string; concepts: string[] }[]> {
  return Promise.all(
    (await ownModels(app)).map(async ({ id, name }) => {
      const { model } = await app.v2.GET('/models/{model_id}/output_info', { params: { path: { model_id: id } } });
      return { id, name, concepts: (model.output_info.data?.concepts ?? []).map((c) => c.id) };
    }),
  );
}
