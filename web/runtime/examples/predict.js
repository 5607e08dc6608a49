// Prints the concepts in a picture:  node predict.js PICTURE
import { readFile } from 'node:fs/promises';
import { Sightline } from '@sightline/runtime';

const base64 = (await readFile(process.argv[2])).toString('base64');
const sightline = await Sightline.open();
const answer = await sightline.fetch('/v2/models/aaa03c23b3724a16a56b629203edc62c/outputs', {
  method: 'POST',
  body: JSON.stringify({ inputs: [{ data: { image: { base64 } } }] }),
});
const { outputs } = await answer.json();
for (const { name, value } of outputs[0].data.concepts) console.log(value.toFixed(3), name);
await sightline.close();
