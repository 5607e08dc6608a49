// Runs every layer of a network alone in ONNX Runtime: node layers.mjs NODE_MODULES DIR
//
// DIR/layers.json lists {model, inputs: {name: [file, type, dims]}, outputs: {name: file}}; the outputs are written.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';

const [modules, dir] = process.argv.slice(2);
const ort = createRequire(path.join(path.resolve(modules), 'x.js'))('onnxruntime-node');
const arrays = { uint8: Uint8Array, uint16: Uint16Array, float32: Float32Array };

for (const layer of JSON.parse(fs.readFileSync(path.join(dir, 'layers.json')))) {
	const session = await ort.InferenceSession.create(path.join(dir, layer.model), { intraOpNumThreads: 1 });
	const feeds = {};
	for (const [name, [file, type, dims]] of Object.entries(layer.inputs)) {
		const bytes = fs.readFileSync(path.join(dir, file));
		const data = new arrays[type](bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
		feeds[name] = new ort.Tensor(type, data, dims);
	}
	const results = await session.run(feeds);
	for (const [name, file] of Object.entries(layer.outputs)) {
		const { data } = results[name];
		fs.writeFileSync(path.join(dir, file), new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
	}
	await session.release();
}
