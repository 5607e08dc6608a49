// Deletes a picture. A deletion is permanent, so it starts only when the time for undoing it is over.
import type { Application } from '../../host/application.svelte';
import { showToast } from '../../parts/toasts.svelte';
import { describeError } from '../../text/problem';
import { at } from './calls';
import { m } from './words';

const grace = 10_000; // ms; a toast shows its undo button for the same time

/** Deletes a picture after 10 seconds. If the person closes the page before, nothing is deleted. back: called if the person undoes it. */
export function deleteLater(app: Application, id: string, name: string, back: () => void): void {
  const timer = setTimeout(() => {
    app.write.DELETE('/inputs/{input_id}', at(id)).catch((failure) => showToast(describeError(failure).title));
  }, grace);
  showToast(m.input_deleting({ name }), {
    undo: () => {
      clearTimeout(timer);
      back();
    },
  });
}
