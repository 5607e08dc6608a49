// Shows pictures in img elements whose rows are used again and again. Pictures are asked for while the page has nothing
// better to do, the latest first, and not at all once their row has gone by. One that is not here is asked for again:
// its bytes may be on their way, the network may come back, a copy may get it.

const pauses = [1000, 4000, 15_000]; // ms before a picture that could not be had is asked for again, and then
const rest = 60_000;

const waiting: (() => void)[] = [];
const missing = new Set<() => void>(); // request a missing picture again
let planned = false;
const idle = (work: (left: () => number) => void) =>
  typeof requestIdleCallback === 'function'
    ? requestIdleCallback((deadline) => work(() => deadline.timeRemaining()), { timeout: 120 })
    : setTimeout(() => work(() => 5), 16);

/** Begins some of the waiting pictures, as many as fit between two frames. */
function plan(): void {
  if (planned || !waiting.length) return;
  planned = true;
  idle((left) => {
    planned = false;
    let begun = 0;
    while (waiting.length && (begun < 2 || (left() > 3 && begun < 12))) {
      waiting.pop()?.();
      begun++;
    }
    plan();
  });
}

/** Asks again for all pictures that are shown as missing: there is reason to hope that some are here now. */
export function findMissing(): void {
  for (const again of [...missing]) again();
}
globalThis.addEventListener?.('online', findMissing);

/**
 * Makes an element show a picture once its address is known, and returns the function that ends it. Nothing is shown until then; a known
 * address begins at once. tell gets whether the picture is missing, each time that this is found out. A broken picture is never drawn.
 */
export function showIn(
  img: HTMLImageElement,
  find: (() => Promise<string>) | string | undefined,
  tell: (away: boolean) => void = () => {},
): () => void {
  img.removeAttribute('src');
  let over = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let tried = 0;
  const load = () => {
    if (typeof find === 'string') img.src = find;
    else
      find?.().then((address) => {
        if (!over) img.src = address;
      }, away);
  };
  const again = () => {
    clearTimeout(timer);
    missing.delete(again);
    if (typeof find === 'string') return load();
    waiting.push(load);
    plan();
  };
  function away() {
    if (over) return;
    img.removeAttribute('src');
    missing.add(again);
    timer = setTimeout(again, pauses[tried++] ?? rest);
    tell(true);
  }
  img.onload = () => tell(false);
  img.onerror = away; // its bytes are not a picture, or were deleted meanwhile
  again();
  return () => {
    over = true;
    img.onload = img.onerror = null;
    clearTimeout(timer);
    missing.delete(again);
    const at = waiting.lastIndexOf(load);
    if (at >= 0) waiting.splice(at, 1);
  };
}
