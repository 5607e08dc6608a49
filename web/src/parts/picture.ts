// Shows pictures in img elements whose rows are used again and again. Pictures are asked for while the page has nothing
// better to do, the latest first, and not at all once their row has gone by.

const pauses = [1000, 4000, 15_000]; // ms before a picture that could not be had is asked for again: its bytes may be on their way

const waiting: (() => void)[] = [];
let planned = false;
const idle = (work: (left: () => number) => void) =>
  typeof requestIdleCallback === 'function'
    ? requestIdleCallback((deadline) => work(() => deadline.timeRemaining()), { timeout: 120 })
    : setTimeout(() => work(() => 5), 16);

/** Begins with some of what waits, as many as a pause between two frames has room for. */
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

/** Has an element show a picture once its address is known, and returns the way to end that. Nothing is shown until then. */
export function showIn(img: HTMLImageElement, find: (() => Promise<string>) | undefined): () => void {
  img.removeAttribute('src');
  let over = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let tried = 0;
  const load = () => {
    find?.().then(
      (address) => {
        if (!over) img.src = address;
      },
      () => {
        const pause = pauses[tried++];
        if (!over && pause) timer = setTimeout(load, pause);
      },
    );
  };
  waiting.push(load);
  plan();
  return () => {
    over = true;
    clearTimeout(timer);
    const at = waiting.lastIndexOf(load);
    if (at >= 0) waiting.splice(at, 1);
  };
}
