// Texts for operations, verdicts and sync phases. Labels are separate, because they contain the users' names of concepts.

import type { Label, Operation } from './calls';
import { m } from './words';

const kinds: Readonly<Record<string, () => string>> = {
  input_create: () => m.op_input_create(),
  input_labels: () => m.op_input_labels(),
  input_meta: () => m.op_input_meta(),
  input_geo: () => m.op_input_geo(),
  input_delete: () => m.op_input_delete(),
  input_delete_all: () => m.audit_inputs_delete_all(),
  concept_create: () => m.op_concept(),
  concept_name: () => m.op_concept(),
  model_create: () => m.op_model_create(),
  model_patch: () => m.op_model_patch(),
  model_delete: () => m.op_model_delete(),
  model_delete_all: () => m.op_model_delete(),
  version_train: () => m.op_version_train(),
  version_result: () => m.op_version_result(),
};

/** Returns the name of an operation's kind. */
export const operationName = (o: Pick<Operation, 'kind'>): string => kinds[o.kind]?.() ?? m.op_other();

/** Returns the labels that an operation adds or removes; an empty list for operations without labels. */
export const labelsOf = (o: Pick<Operation, 'kind' | 'content'>): readonly Label[] =>
  o.kind === 'input_labels' || o.kind === 'input_create' ? (o.content.concepts ?? []) : [];

const verdicts: Readonly<Record<string, () => string>> = {
  superseded: () => m.verdict_superseded(),
  duplicate: () => m.verdict_duplicate(),
  gone: () => m.verdict_gone(),
  stale: () => m.verdict_stale(),
  refused: () => m.verdict_refused(),
};

/** Returns the text of a verdict. */
export const verdictText = (verdict: string): string => verdicts[verdict]?.() ?? m.verdict_refused();

const phases: Readonly<Record<string, () => string>> = {
  stopped: () => m.phase_stopped(),
  unreachable: () => m.phase_unreachable(),
  connecting: () => m.phase_connecting(),
  rebasing: () => m.phase_rebasing(),
  pulling: () => m.phase_pulling(),
  paused: () => m.phase_paused(),
  current: () => m.phase_current(),
};

/** Returns the text of a replica's sync phase. */
export const phaseText = (phase: string): string => phases[phase]?.() ?? phase;
