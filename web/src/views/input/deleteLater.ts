// Deleting a picture. There is no way back once it is done, so that it waits until the time to take it back is over.
import type { Application } from '../../application.svelte';
import { showToast } from '../../parts/toasts.svelte';
import { describeError } from '../../problem';
import { remove } from './calls';
import { m } from './words';

const grace = 10_000; // ms, as long as a toast can be taken back

/** Deletes a picture after a time. Nothing is sent until then: a person who closes the page before has deleted nothing. */
export function deleteLater(app: Application, id: string, name: string, back: () => void): void {
  const timer = setTimeout(() => {
    remove(app, id).catch((failure) => showToast(describeError(failure).title));
  }, grace);
  showToast(m.input_deleting({ name }), {
    undo: () => {
      clearTimeout(timer);
      back();
    },
  });
}
