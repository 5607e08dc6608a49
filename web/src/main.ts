import { mount } from 'svelte';
import App from './App.svelte';
import { readChoice } from './browser/storage';
import { loadSession } from './host/session.svelte';
import { startRouter } from './routing/router.svelte';
import './style/tokens.css';
import './style/base.css';
import { preferredLanguage, setLanguage } from './i18n/i18n.svelte';

// Ignores a dropped file that no part of the page handles. Otherwise the browser would open it instead of the page.
const refuse = (event: DragEvent) => {
  if (event.defaultPrevented || !event.dataTransfer?.types.includes('Files')) return;
  event.dataTransfer.dropEffect = 'none';
  event.preventDefault();
};
for (const kind of ['dragover', 'drop'] as const) {
  const last = () => {
    removeEventListener(kind, refuse);
    addEventListener(kind, refuse); // after all other listeners, which may handle the file
  };
  addEventListener(kind, last, { capture: true });
}

// Before a page opens a store again.
if (readChoice('leaving')) await import('./deviceData').then((d) => d.finishRemoval()).catch(() => {});
startRouter();
void loadSession();
// No page works without messages, so this repeats until they are loaded.
const words = (): Promise<void> =>
  setLanguage(preferredLanguage())
    .catch(() => setLanguage('en'))
    .catch(words);
await words();
mount(App, { target: document.body });
