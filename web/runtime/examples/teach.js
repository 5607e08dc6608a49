// Trains a model on two concepts, each shown by a folder of pictures, and prints which concept a picture shows:
//
//     node teach.js cats dogs PICTURE
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Sightline } from '@sightline/runtime';

const [picture, ...folders] = process.argv.slice(2).reverse();
const sightline = await Sightline.open();
const call = async (method, path, body) => {
  const answer = await (await sightline.fetch(`/v2${path}`, { method, body: body && JSON.stringify(body) })).json();
  if (answer.status.code !== 10000) throw new Error(`${answer.status.description}: ${answer.status.details}`);
  return answer;
};
const imageOf = async (path) => ({ base64: (await readFile(path)).toString('base64') });

// Pictures with the concepts that they show. A call accepts up to 128 of them.
const concepts = folders.map((folder) => ({ id: basename(folder) }));
for (const folder of folders) {
  const inputs = [];
  for (const name of await readdir(folder))
    inputs.push({ data: { image: await imageOf(join(folder, name)), concepts: [{ id: basename(folder), value: 1 }] } });
  await call('POST', '/inputs', { inputs });
}

// A model of them, and its first version.
const output_info = { data: { concepts }, output_config: { concepts_mutually_exclusive: true } };
await call('POST', '/models', { model: { id: 'taught', output_info } });
const { model } = await call('POST', '/models/taught/versions');
const isTrained = async () => {
  const { model_version: version } = await call('GET', `/models/taught/versions/${model.model_version.id}`);
  if (version.status.code > 21110) throw new Error(version.status.description);
  return version.status.code === 21100;
};
while (!(await isTrained())) await new Promise((resolve) => setTimeout(resolve, 20));

const { outputs } = await call('POST', '/models/taught/outputs', {
  inputs: [{ data: { image: await imageOf(picture) } }],
});
for (const { id, value } of outputs[0].data.concepts) console.log(value.toFixed(3), id);
await sightline.close();
