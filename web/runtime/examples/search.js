// Stores the pictures of a folder in a local store, and finds those that are similar to a picture. It needs no network. A second run finds
// the pictures that the first run stored:
//
//     node search.js STORE PICTURE [FOLDER]
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Sightline } from '@sightline/runtime';

const [store, picture, folder] = process.argv.slice(2);
const sightline = await Sightline.open({ store: { folder: store } });
const call = async (path, body) => {
  const answer = await sightline.fetch(`/v2${path}`, { method: 'POST', body: JSON.stringify(body) });
  return answer.json();
};
const imageOf = async (path) => ({ base64: (await readFile(path)).toString('base64') });

for (const id of folder ? await readdir(folder) : []) {
  const { inputs } = await call('/inputs', { inputs: [{ id, data: { image: await imageOf(join(folder, id)) } }] });
  if (inputs[0].status.code >= 30100) console.error(id, inputs[0].status.description); // it is already stored, or is not a picture
}
const { hits } = await call('/searches', {
  query: { ands: [{ output: { input: { data: { image: await imageOf(picture) } } } }] },
  pagination: { page: 1, per_page: 5 },
});
for (const { score, input } of hits) console.log(score.toFixed(3), input.id);
await sightline.close();
