import type { Counts } from '../../api/console';
import { list, number } from '../../i18n/i18n.svelte';
import { m } from './words';

/** Returns the contents of an application in one line: "1,284 pictures, 61 custom concepts, 4 custom models and 2 keys". */
export function contentsText(c: Counts): string {
  const words = [m.count_pictures({ count: c.inputs, n: number(c.inputs) })];
  if (c.concepts) words.push(m.count_concepts({ count: c.concepts, n: number(c.concepts) }));
  if (c.models) words.push(m.count_models({ count: c.models, n: number(c.models) }));
  words.push(m.count_keys({ count: c.keys, n: number(c.keys) }));
  return list(words);
}
