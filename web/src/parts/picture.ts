// Shows pictures in img elements that a grid reuses. It requests pictures while the page is idle, the latest first, and drops the requests
// of rows that left the window. It repeats the request of an unavailable picture: the network may come back, or the replica may receive
// the picture.

const pauses = [1000, 4000, 15_000]; // ms before the first repeated requests of an unavailable picture
const rest = 60_000;

const waiting: (() => void)[] = [];
const missing = new Set<() => void>(); // functions that request an unavailable picture again
let planned = false;
const idle = (work: (left: () => number) => void) =>
  typeof requestIdleCallback === 'function'
    ? requestIdleCallback((deadline) => work(() => deadline.timeRemaining()), { timeout: 120 })
    : setTimeout(() => work(() => 5), 16);

/** Starts the requests of waiting pictures, as many as fit between two frames. */
function plan(): void {
  if (planned || !waiting.length) return;
  planned = true;
  idle((left) => {
    planned = false;
    let started = 0;
    while (waiting.length && (started < 2 || (left() > 3 && started < 12))) {
      waiting.pop()?.();
      started++;
    }
    plan();
  });
}

/** Requests all unavailable pictures again. Call it when some of them may have become available. */
export function findMissing(): void {
  for (const again of [...missing]) again();
}
globalThis.addEventListener?.('online', findMissing);

/**
 * Shows a picture in an element, and returns a function that ends this. find: the URL, which is loaded at once, or a function that
 * returns it, which is called when the page is idle. Until the URL is known, the element is empty. After each attempt, onAttempt is called
 * with whether the picture is unavailable. A broken picture counts as unavailable.
 */
export function showIn(
  img: HTMLImageElement,
  find: (() => Promise<string>) | string | undefined,
  onAttempt: (isUnavailable: boolean) => void = () => {},
): () => void {
  img.removeAttribute('src');
  let isEnded = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let tried = 0;
  const load = () => {
    if (typeof find === 'string') img.src = find;
    else
      find?.().then((address) => {
        if (!isEnded) img.src = address;
      }, onFailure);
  };
  const again = () => {
    clearTimeout(timer);
    missing.delete(again);
    if (typeof find === 'string') return load();
    waiting.push(load);
    plan();
  };
  function onFailure() {
    if (isEnded) return;
    img.removeAttribute('src');
    missing.add(again);
    timer = setTimeout(again, pauses[tried++] ?? rest);
    onAttempt(true);
  }
  img.onload = () => onAttempt(false);
  img.onerror = onFailure; // the bytes are not a picture, or were deleted meanwhile
  again();
  return () => {
    isEnded = true;
    img.onload = img.onerror = null;
    clearTimeout(timer);
    missing.delete(again);
    const at = waiting.lastIndexOf(load);
    if (at >= 0) waiting.splice(at, 1);
  };
}
