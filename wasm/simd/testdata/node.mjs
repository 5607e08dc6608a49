// node node.mjs FOLDER: repeats the recorded operations in FOLDER with the kernels in FOLDER.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { replay } from './replay.mjs';

const read = (name) => readFileSync(join(process.argv[2], name));
console.log(await replay(read('kernels.wasm'), JSON.parse(read('operations.json'))));
