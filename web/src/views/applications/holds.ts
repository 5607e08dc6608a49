import type { Counts } from '../../console';
import { list, number } from '../../words.svelte';
import { m } from './words';

/** What an application holds, in one line: "1,284 inputs, 61 concepts of its own and 4 models". */
export function holds(c: Counts): string {
  const words = [m.count_inputs({ count: c.inputs, n: number(c.inputs) })];
  if (c.concepts) words.push(m.count_concepts({ count: c.concepts, n: number(c.concepts) }));
  if (c.models) words.push(m.count_models({ count: c.models, n: number(c.models) }));
  if (c.workflows) words.push(m.count_workflows({ count: c.workflows, n: number(c.workflows) }));
  words.push(m.count_keys({ count: c.keys, n: number(c.keys) }));
  return list(words);
}
