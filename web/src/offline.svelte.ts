// Starting offline, and as an installed application: the browser's state of both.
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

const pauses = [5_000, 15_000, 60_000, 300_000]; // ms before what was not stored is tried again
const rest = 1_800_000; // and from then on
let storing = false;

/**
 * Makes the browser store the files that the page needs to start offline. Other pages of this site then also get answers of the runtime
 * under /local/v2. An interrupted attempt is repeated for as long as the page is open. If the browser stores nothing, the page works that
 * long.
 */
export async function store(): Promise<void> {
  const shell = document.querySelector<HTMLMetaElement>('meta[name="shell"]')?.content;
  if (!shell || !('serviceWorker' in navigator) || storing) return;
  storing = true;
  for (const again = pauses.values(); ; ) {
    try {
      const { registerServiceWorker } = await runtime();
      await registerServiceWorker({ scope: '/', answer: '/local/', shell });
      stored = true;
      return;
    } catch (failure) {
      if (failure instanceof DOMException && failure.name !== 'AbortError') return; // the browser will not
    }
    const pause = again.next().value ?? rest;
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** Asks the browser not to delete the stored data when it needs space. */
export function persist(): void {
  void navigator.storage?.persist?.().catch(() => false);
}
