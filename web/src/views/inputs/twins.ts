// Finds the picture that a new one repeats.
import type { V2 } from '../../api/client';
import type { Application } from '../../host/application.svelte';
import type { Twin } from './entry.svelte';

/** Finds the duplicate of a new input, and reports it as soon as it is known. It reports nothing if there is none or no host answers. */
export async function findTwin(app: Application, id: string, report: (twin: Twin) => void): Promise<void> {
  const find = async (v2: V2) => {
    const params = { path: { input_id: id }, query: { per_page: 1 } };
    const [first] = (await v2.GET('/inputs/{input_id}/duplicates', { params })).duplicates;
    if (first) report({ tier: first.tier, id: first.input.id });
    return first;
  };
  try {
    const first = await find(app.v2);
    // A host needs the bytes of both pictures to tell a re-encoded picture from a similar one. A replica may lack the bytes of the older
    // picture. The origin has them, and it has those of the new picture once the replica has sent it.
    if (first?.tier === 'similar' && app.by === 'device' && (await app.waitUntilSent(id))) await find(app.remote);
  } catch {
    // The input is stored. Its page shows similar pictures.
  }
}
