// Sends all pictures of this device to an application of the server. They leave the device only when the user requests it.
import type { Application } from '../../host/application.svelte';
import { addExample, findOrCreateConcept } from '../models/calls';
import type { FilePlaces } from './filePlaces.svelte';
import type { LookState } from './lookState.svelte';

/**
 * Saves all pictures of the device to an application, with their labels. If the application has a picture already, this only adds the
 * label, so the caller can repeat a failed call. `look.progress` shows the progress, and `places` gets the places of new pictures.
 */
export async function sendAll(look: LookState, app: Application, places: FilePlaces): Promise<void> {
  const concepts = new Map<string, string>(); // concept ids of the application, by the concept ids of the device
  const all = look.pictures.all;
  try {
    look.progress = { done: 0, all: all.length };
    for (const { id, name } of look.concepts) {
      if (name && look.picturesOf(id).length) concepts.set(id, (await findOrCreateConcept(app, name)).concept.id);
    }
    for (const [done, picture] of all.entries()) {
      look.progress = { done, all: all.length };
      const blob = await look.pictures.blob(picture);
      const concept = concepts.get(picture.concept ?? '');
      const isNew = await addExample(app, { ...picture, blob }, concept);
      if (isNew) await places.add(picture.id, blob);
    }
  } finally {
    look.progress = undefined;
  }
}
