// Single-key shortcuts for buttons. A person can turn them off. They have no effect in text fields and dialogs. The pages list the
// shortcuts of the current page with their texts.
import { untrack } from 'svelte';
import { readChoice, saveChoice } from './storage';

/** The label of a key and the text of its action. */
export interface ShortcutKey {
  readonly key: string;
  readonly does: string;
}

let isOn = $state(readChoice('keys') !== 'off');
let lists = $state.raw<readonly (() => readonly ShortcutKey[])[]>([]);

/** Reports whether single-key shortcuts are on. */
export function keysOn(): boolean {
  return isOn;
}

/** Turns single-key shortcuts on or off. */
export function setKeys(enabled: boolean): void {
  isOn = enabled;
  saveChoice('keys', enabled ? undefined : 'off');
}

/** Returns the keys of the current page. */
export function listedKeys(): readonly ShortcutKey[] {
  return lists.flatMap((list) => list());
}

/** Lists keys while the calling component is mounted. */
export function listKeys(list: () => readonly ShortcutKey[]): void {
  $effect(() => {
    untrack(() => (lists = [...lists, list]));
    return () => (lists = lists.filter((one) => one !== list));
  });
}

/** Returns the nearest element around the target of an event that matches a selector. */
export const closest = (event: Event, selector: string): HTMLElement | null =>
  event.target instanceof Element ? event.target.closest<HTMLElement>(selector) : null;

const signs: Readonly<Record<string, string>> = { ' ': '␣', delete: 'Del' };

/** Adds a shortcut and lists it while the calling component is mounted. key: `event.key` in lower case. */
export function shortcut(key: string, text: () => string, act: () => void): void {
  listKeys(() => [{ key: signs[key] ?? key.toUpperCase(), does: text() }]);
  $effect(() => {
    const press = (event: KeyboardEvent) => {
      if (!isOn || event.key.toLowerCase() !== key || event.ctrlKey || event.metaKey || event.altKey) return;
      if (closest(event, 'input, textarea, select, [contenteditable], [role="dialog"], [role="alertdialog"]')) return;
      event.preventDefault();
      act();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  });
}
