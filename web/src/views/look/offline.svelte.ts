// Starting without a network, and as an application of its own: what the browser says of either.

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

/** Has the browser store what the page needs. It waits for nothing and harms nothing where that fails. */
export async function store(): Promise<void> {
  if (!('serviceWorker' in navigator)) return;
  try {
    await navigator.serviceWorker.register('/service-worker.js');
    await navigator.serviceWorker.ready;
    stored = true;
    await navigator.storage?.persist?.();
  } catch {
    stored = false; // private windows of some browsers: the page works as long as it is open
  }
}
