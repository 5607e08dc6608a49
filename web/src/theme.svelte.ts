// Light, dark, or as the system is.
import { readChoice, saveChoice } from './storage';

export const themes = ['system', 'light', 'dark'] as const;
export type Theme = (typeof themes)[number];

let chosen = $state<Theme>(themes.find((t) => t === readChoice('theme')) ?? 'system');
let drawn = $state(0);

/** The theme that was chosen. */
export function theme(): Theme {
  return chosen;
}

/** Changes whenever colours do: what draws by itself reads it and draws again. */
export function colours(): number {
  return drawn;
}

/** Shows a theme from now on. */
export function setTheme(t: Theme): void {
  chosen = t;
  saveChoice('theme', t === 'system' ? undefined : t);
  if (t === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = t;
  drawn++;
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => drawn++);
