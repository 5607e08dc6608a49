// Shows pictures in img elements whose rows are used again and again.

const pauses = [1000, 4000, 15_000]; // ms before a picture that could not be had is asked for again: its bytes may be on their way

/**
 * Has an element show a picture once its address is known, and returns the way to end that. Nothing is shown until
 * then. patient: the window races past it, so that it can wait.
 */
export function showIn(img: HTMLImageElement, find: (() => Promise<string>) | undefined, patient: boolean): () => void {
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
  if (patient) timer = setTimeout(load, 90);
  else load();
  return () => {
    over = true;
    clearTimeout(timer);
  };
}
