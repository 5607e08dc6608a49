// The number of selected inputs with a label, and a person's position in a list.
import type { Selection } from './selection.svelte';

/** Of how many a concept was said to be there, and not to be; undefined where all that match are selected: they are too many to look at. */
export function labelCounts(selection: Selection, concept: string): { present: number; absent: number } | undefined {
  if (selection.all) return undefined;
  let [present, absent] = [0, 0];
  for (const { data } of selection.inputs) {
    const said = data.concepts?.find(({ id }) => id === concept);
    if (said) said.value === 0 ? absent++ : present++;
  }
  return { present, absent };
}

/** The cell that a person was at, by list: for coming back to it. */
export const lastCells = new Map<string, number>();
