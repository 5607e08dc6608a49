// The calls of /v2 by the sync page. The replica on this device answers them, with or without a network, or the edge.
import { base64Of } from '../../api/blobs';
import { bytesAt, type Fetch, type Schemas, type V2 } from '../../api/client';
import { Failure } from '../../api/console';
import { countInputs, fileName, hostedPath } from '../../host/calls';
import type { Conflict, Pending } from '../../host/outbox.svelte';

/** A write at this host. */
export type Operation = Pending | Conflict;

/** A label: 1 for present, 0 for absent, null for a removed label. */
export type Label = Schemas['OperationConcept'];

/** An input of the replica. */
export interface Input {
  readonly id: string;
  readonly name: string;
  readonly path: string; // path of its picture, "/hosted/…"; empty if the picture is not stored here
  readonly concepts: readonly Label[];
}

/** The value in force for the subject of a conflict. */
export type InForce = { is: 'input'; input: Input } | { is: 'named'; name: string } | { is: 'gone' };

/** Returns the number of inputs and at most `limit` of the newest, newest first. */
export async function newest(v2: V2, limit: number): Promise<{ all: number; inputs: Input[] }> {
  const { all } = await countInputs(v2);
  const last = Math.max(1, Math.ceil(all / limit));
  const found: Input[] = [];
  for (let page = Math.max(1, last - 1); page <= last + 1; page++) {
    // one more: some may have come meanwhile
    const { inputs } = await v2.GET('/inputs', { params: { query: { page, per_page: limit } } });
    found.push(...inputs.map(inputOf));
    if (inputs.length < limit) break;
  }
  return { all, inputs: found.slice(-limit).reverse() };
}

/** Adds a picture that the host has, under another id. */
export async function addAgain(
  v2: V2,
  ask: Fetch,
  { hosted, ...content }: Pending['content'],
  id: string,
): Promise<void> {
  const base64 = await base64Of(await bytesAt(ask, hostedPath(hosted)));
  const concepts = content.concepts?.map((c) => ({ id: c.id, value: Boolean(c.value) }));
  const { metadata, geo } = content;
  await v2.POST('/inputs', {
    body: { inputs: [{ id, data: { image: { base64 }, concepts, metadata, geo: geo ?? undefined } }] },
  });
}

/** Returns the custom concepts of an application. A list has them before those of the models. */
export async function ownConcepts(v2: V2, app: string): Promise<Schemas['Concept'][]> {
  const { concepts } = await v2.GET('/concepts', { params: { query: { per_page: 200 } } });
  return concepts.filter((c) => c.app_id === app);
}

/** The value in force for the subject of an operation. */
export async function inForce(v2: V2, o: Pick<Operation, 'input_id' | 'model_id' | 'concept_id'>): Promise<InForce> {
  const { input_id, model_id, concept_id } = o;
  try {
    if (input_id) {
      const { input } = await v2.GET('/inputs/{input_id}', { params: { path: { input_id } } });
      return { is: 'input', input: inputOf(input) };
    }
    if (model_id) {
      const { model } = await v2.GET('/models/{model_id}', { params: { path: { model_id } } });
      return { is: 'named', name: model.name };
    }
    if (concept_id) {
      const { concept } = await v2.GET('/concepts/{concept_id}', { params: { path: { concept_id } } });
      return { is: 'named', name: concept.name };
    }
  } catch (failure) {
    if (!(failure instanceof Failure && failure.status === 404)) throw failure;
  }
  return { is: 'gone' };
}

const inputOf = ({ id, data }: Schemas['Input']): Input => ({
  id,
  name: fileName(data.metadata),
  path: hostedPath(data.image.url),
  concepts: data.concepts ?? [],
});
