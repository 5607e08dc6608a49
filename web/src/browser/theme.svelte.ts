// The theme of the pages: light, dark, or that of the operating system.
import { readChoice, saveChoice } from './storage';

export const themes = ['system', 'light', 'dark'] as const;
export type Theme = (typeof themes)[number];

let chosen = $state<Theme>(themes.find((t) => t === readChoice('theme')) ?? 'system');
let drawn = $state(0);

/** Returns the chosen theme. */
export function theme(): Theme {
  return chosen;
}

/** Returns a number that increases with each change of the theme. Components that draw on a canvas read it to draw again. */
export function colours(): number {
  return drawn;
}

/** Applies a theme, and stores the choice. */
export function setTheme(t: Theme): void {
  chosen = t;
  saveChoice('theme', t === 'system' ? undefined : t);
  if (t === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = t;
  drawn++;
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => drawn++);
