// Single keys that do what a button does. They can be turned off, and never act while something is typed.
import { keep, kept } from './storage';

let on = $state(kept('keys') !== 'off');

/** Whether single keys act. */
export function keysOn(): boolean {
  return on;
}

/** Turns single keys on or off. */
export function setKeys(wanted: boolean): void {
  on = wanted;
  keep('keys', wanted ? undefined : 'off');
}

/** Lets a key do something for as long as the component that calls this is shown. */
export function shortcut(key: string, act: () => void): void {
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
