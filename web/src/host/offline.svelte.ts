// The browser's state for starting offline and as an installed application.
import { runtime } from './device.svelte';

let hasNetwork = $state(navigator.onLine);
let isStored = $state(false);
let prompt = $state.raw<WindowEventMap['beforeinstallprompt']>();

addEventListener('online', () => (hasNetwork = true));
addEventListener('offline', () => (hasNetwork = false));
addEventListener('beforeinstallprompt', (event) => {
  event.preventDefault();
  prompt = event;
});
addEventListener('appinstalled', () => (prompt = undefined));

/** Reports whether the browser has a network. */
export function isOnline(): boolean {
  return hasNetwork;
}

/** Reports whether the browser has stored all files that the page needs. */
export function startsOffline(): boolean {
  return isStored;
}

/** Returns a function that asks the person whether to install the pages; undefined if the browser offers no installation. */
export function installPrompt(): (() => Promise<void>) | undefined {
  const promptEvent = prompt;
  if (!promptEvent) return undefined;
  return async () => {
    prompt = undefined;
    await promptEvent.prompt();
  };
}

const pauses = [5_000, 15_000, 60_000, 300_000]; // ms before the next attempts
const longPause = 1_800_000; // ms before each later attempt
let isStoring = false;

/**
 * Installs a service worker that stores the files which the page needs to start offline. Other pages of this site can then call the
 * runtime under /local/v2. While the page is open, it repeats interrupted attempts. If the browser refuses, the page cannot start offline.
 */
export async function storePages(): Promise<void> {
  const shell = document.querySelector<HTMLMetaElement>('meta[name="shell"]')?.content;
  if (!shell || !('serviceWorker' in navigator) || isStoring) return;
  isStoring = true;
  for (const again = pauses.values(); ; ) {
    try {
      const { registerServiceWorker } = await runtime();
      await registerServiceWorker({ scope: '/', answer: '/local/', shell });
      isStored = true;
      return;
    } catch (failure) {
      if (failure instanceof DOMException && failure.name !== 'AbortError') return; // the browser refuses the service worker
    }
    const pause = again.next().value ?? longPause;
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** Asks the browser not to delete the stored data when it needs space. */
export function requestPersistence(): void {
  void navigator.storage?.persist?.().catch(() => false);
}
