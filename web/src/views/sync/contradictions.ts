// The contradictions of an application: values whose makers did not know of each other's.
import type { Schemas, V2 } from '../../api/client';
import type { Contradiction } from '../../host/outbox.svelte';
import type { Label } from './calls';
import { m } from './words';

export type SetValue = Contradiction['values'][number];

/** Decides a contradiction: sets the value with an index again. A deletion is only dismissed. */
export async function keep(v2: V2, { id, field }: Contradiction, index: number): Promise<void> {
  const params = { path: { conflict_id: id } };
  if (field === 'deletion') await v2.DELETE('/sync/conflicts/{conflict_id}', { params });
  else await v2.PATCH('/sync/conflicts/{conflict_id}', { params, body: { keep: index } });
}

/** Returns the name of the change that contradicts. */
export function changeName({ field, model_id, path }: Contradiction): string {
  switch (field) {
    case 'label':
      return m.op_input_labels();
    case 'metadata':
      return path?.length ? `${m.op_input_meta()}: ${path.join(' › ')}` : m.op_input_meta();
    case 'place':
      return m.op_input_geo();
    case 'name':
      return model_id ? m.op_model_patch() : m.op_concept();
    case 'deletion':
      return m.op_input_delete();
  }
}

/** Returns the label that a value of a contradiction sets; undefined if it sets something else. */
export function labelOf(c: Contradiction, { value, deleted }: SetValue): Label | undefined {
  const isLabel = c.field === 'label' || c.written === 'label';
  if (!isLabel || deleted || !c.concept_id) return undefined;
  return { id: c.concept_id, value: typeof value === 'number' ? value : null };
}

/** Returns the text of a value that is not a label. */
export function valueText({ field, written }: Contradiction, { value, deleted }: SetValue): string {
  if (deleted) return m.sync_deleted();
  if (value === null || value === undefined) return m.label_removed();
  if (field === 'place' || written === 'place') {
    const { geo_point } = value as Schemas['Geo']; // the type of a value depends on the field
    return `${geo_point.latitude}, ${geo_point.longitude}`;
  }
  return typeof value === 'string' ? value : JSON.stringify(value);
}
