// Describes a step of a picture's history in the reader's language.
import type { Application } from '../../host/application.svelte';
import { nameOfEdge } from '../../host/session.svelte';
import { row } from '../../i18n/i18n.svelte';
import { conceptName } from '../../text/conceptNames.svelte';
import { verdictText } from '../sync/operationText';
import type { Step } from './calls';
import { m } from './words';

const kinds: Readonly<Record<string, () => string>> = {
  input_create: () => m.input_step_create(),
  input_meta: () => m.op_input_meta(),
  input_delete: () => m.op_input_delete(),
  input_delete_all: () => m.audit_inputs_delete_all(),
};

/** Returns the effects of a step, one per line. */
export function stepText(app: Application, step: Pick<Step, 'content' | 'kind' | 'verdict'>): string[] {
  const { content, kind, verdict } = step;
  const lines: string[] = [];
  const names = (value: (v: number | null | undefined) => boolean) =>
    (content.concepts ?? []).filter((c) => value(c.value)).map((c) => conceptName(app, c.id, c.name ?? c.id));
  const sentences: readonly [string[], (inputs: { names: string }) => string][] = [
    [names((v) => v !== null && v !== 0), m.input_step_present],
    [names((v) => v === 0), m.input_step_absent],
    [names((v) => v === null), m.input_step_removed],
  ];
  if (kind === 'input_geo') lines.push(content.geo === null ? m.input_step_place_removed() : m.input_step_place());
  else if (kind === 'input_fetched') lines.push(`${content.status?.description ?? ''} (${content.status?.code ?? ''})`);
  else if (kind === 'outputs_patch') lines.push(m.input_step_outputs());
  else if (kind !== 'input_labels') lines.push(kinds[kind]?.() ?? m.op_other());
  if (kind !== 'outputs_patch')
    for (const [list, words] of sentences) if (list.length) lines.push(words({ names: row(list) }));
  if (verdict) lines.push(verdictText(verdict));
  return lines;
}

/** Returns the place of a step: this browser or this edge while the step is pending, and then the origin. */
export function stepPlace(app: Application, step: Step): string {
  if (step.state !== 'queued' && step.state !== 'sent') return m.input_site_origin();
  return app.copy ? m.consistency_browser() : m.edge_name({ name: nameOfEdge() });
}
