// Starting without a network, and as an application of its own: what the browser says of either.
import { runtime } from './device.svelte';

interface InstallPrompt extends Event {
  prompt(): Promise<unknown>;
}

let network = $state(navigator.onLine);
let stored = $state(false);
let prompt = $state.raw<InstallPrompt>();

addEventListener('online', () => (network = true));
addEventListener('offline', () => (network = false));
addEventListener('beforeinstallprompt', (event) => {
  event.preventDefault();
  prompt = event as InstallPrompt;
});
addEventListener('appinstalled', () => (prompt = undefined));

/** Whether the browser sees a network at all. */
export function online(): boolean {
  return network;
}

/** Whether everything that this page needs is stored in the browser. */
export function startsOffline(): boolean {
  return stored;
}

/** Asks the person whether to install the pages; undefined where the browser has no such question. */
export function install(): (() => Promise<void>) | undefined {
  const asked = prompt;
  if (!asked) return undefined;
  return async () => {
    prompt = undefined;
    await asked.prompt();
  };
}

/**
 * Has the browser store what the page needs to start without a network; answers of the runtime come to other pages of
 * this origin under /local/v2 then, too. Where the browser stores nothing, the page works as long as it is open.
 */
export async function store(): Promise<void> {
  const shell = document.querySelector<HTMLMetaElement>('meta[name="shell"]')?.content;
  if (!shell || !('serviceWorker' in navigator)) return;
  try {
    const { registerServiceWorker } = await runtime();
    await registerServiceWorker({ scope: '/', answer: '/local/', shell });
    stored = true;
  } catch {
    stored = false;
  }
}

/** Asks the browser not to clear what is kept here when it wants room. */
export function persist(): void {
  void navigator.storage?.persist?.().catch(() => false);
}
