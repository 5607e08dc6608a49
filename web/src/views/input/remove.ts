// Deleting a picture.
import type { Application } from '../../application.svelte';
import { say } from '../../parts/toasts.svelte';
import { m } from '../../words.svelte';
import { remove } from './calls';

/** Deletes a picture and says so. */
export async function removeNow(app: Application, id: string, name: string): Promise<void> {
  await remove(app, id);
  say(app.by === 'device' ? m.input_deleted_here({ name }) : m.input_deleted({ name }));
}
