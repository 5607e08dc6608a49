// All pictures of this device, sent to an application of the server: they leave the device only when somebody asks for it.
import type { Application } from '../../application.svelte';
import { conceptNamed, example } from '../models/calls';
import type { Bench } from './bench.svelte';
import { base64Of } from './pictures';

/**
 * Saves all pictures of the device to an application, with the concepts that they were given here. A picture that the
 * application has only gets the concept, so a call that failed can be repeated.
 */
export async function sendAll(bench: Bench, app: Application): Promise<void> {
  const concepts = new Map<string, string>(); // the application's ids, by those of the device
  const all = bench.pictures.all;
  try {
    bench.adding = { done: 0, all: all.length };
    for (const { id, name } of bench.concepts) {
      if (name && bench.of(id).length) concepts.set(id, (await conceptNamed(app, name)).concept.id);
    }
    for (const [done, picture] of all.entries()) {
      bench.adding = { done, all: all.length };
      const base64 = await base64Of(await bench.pictures.blob(picture));
      await example(app, picture.id, picture.name, base64, concepts.get(picture.concept ?? ''));
    }
  } finally {
    bench.adding = undefined;
  }
}
