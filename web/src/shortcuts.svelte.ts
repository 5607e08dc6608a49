// Single keys that do what a button does. They can be turned off, and never act while something is typed. The keys of the shown page are
// listed with their texts.
import { untrack } from 'svelte';
import { readChoice, saveChoice } from './storage';

/** A key, as a keyboard has it, with its text. */
export interface ShortcutKey {
  readonly key: string;
  readonly does: string;
}

let on = $state(readChoice('keys') !== 'off');
let lists = $state.raw<readonly (() => readonly ShortcutKey[])[]>([]);

/** Whether single keys act. */
export function keysOn(): boolean {
  return on;
}

/** Turns single keys on or off. */
export function setKeys(wanted: boolean): void {
  on = wanted;
  saveChoice('keys', wanted ? undefined : 'off');
}

/** The keys of the shown page. */
export function listedKeys(): readonly ShortcutKey[] {
  return lists.flatMap((list) => list());
}

/** Lists keys for as long as the component that calls this is shown. */
export function listKeys(list: () => readonly ShortcutKey[]): void {
  $effect(() => {
    untrack(() => (lists = [...lists, list]));
    return () => (lists = lists.filter((one) => one !== list));
  });
}

const signs: Readonly<Record<string, string>> = { ' ': '␣', delete: 'Del' };

/** Lets a key do something, and lists it by its text, for as long as the component that calls this is shown. */
export function shortcut(key: string, text: () => string, act: () => void): void {
  listKeys(() => [{ key: signs[key] ?? key.toUpperCase(), does: text() }]);
  $effect(() => {
    const press = (event: KeyboardEvent) => {
      if (!on || event.key.toLowerCase() !== key || event.ctrlKey || event.metaKey || event.altKey) return;
      const target = event.target as HTMLElement;
      if (target.closest('input, textarea, select, [contenteditable], [role="dialog"], [role="alertdialog"]')) return;
      event.preventDefault();
      act();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  });
}
