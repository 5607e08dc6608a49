// Counts the selected inputs with a label, and remembers a person's position in each list.
import type { Selection } from './selection.svelte';

/** Counts the selected inputs with a label for a concept. It returns undefined if all matches are selected, which are too many. */
export function labelCounts(selection: Selection, concept: string): { present: number; absent: number } | undefined {
  if (selection.all) return undefined;
  let [present, absent] = [0, 0];
  for (const { data } of selection.inputs) {
    const label = data.concepts?.find(({ id }) => id === concept);
    if (label) label.value === 0 ? absent++ : present++;
  }
  return { present, absent };
}

/** The last cell of a person in each list, to return to it. */
export const lastCells = new Map<string, number>();
