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

const pauses = [5_000, 15_000, 60_000, 300_000]; // ms before what was not stored is tried again
const rest = 1_800_000; // and from then on
let storing = false;

/**
 * Has the browser store what the page needs to start without a network; answers of the runtime come to other pages of
 * this origin under /local/v2 then, too. What the network or the origin cut short is tried again for as long as the page is
 * open. Where the browser stores nothing, the page works that long.
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

/** Asks the browser not to clear what is kept here when it wants room. */
export function persist(): void {
  void navigator.storage?.persist?.().catch(() => false);
}
