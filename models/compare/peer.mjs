// Runs the peers of make bench. It reads one JSON command a line from standard input and writes one JSON answer a line.
//
//   {"peer":"onnxruntime","model":PATH,"n":N}   the network on its reference input, one thread
//   {"peer":"sharp","picture":PATH,"n":N}       decodes the picture and scales all of it down to 224 x 224, one thread
//
// The answer is {"cpu":ms}: user and system time of this process, the mean of N repetitions. A single
// repetition is inaccurate, because the clock advances in ticks of some milliseconds.
import fs from 'node:fs';
import readline from 'node:readline';
import ort from 'onnxruntime-node';
import sharp from 'sharp';

sharp.concurrency(1);
sharp.cache(false);

const sessions = new Map();
const warmUps = 3;

const cpu = () => {
	const u = process.cpuUsage();
	return (u.user + u.system) / 1e3;
};

async function repeat(n, once) {
	for (let i = 0; i < warmUps; i++) await once();
	const start = cpu();
	for (let i = 0; i < n; i++) await once();
	return (cpu() - start) / n;
}

async function session(model) {
	if (!sessions.has(model)) {
		const options = { intraOpNumThreads: 1, interOpNumThreads: 1, executionMode: 'sequential', graphOptimizationLevel: 'all' };
		sessions.set(model, await ort.InferenceSession.create(model, options));
	}
	return sessions.get(model);
}

const peers = {
	async onnxruntime({ model, n }) {
		const s = await session(model);
		const shape = s.inputMetadata[0].shape.map((d) => (typeof d === 'number' && d > 0 ? d : 1));
		const length = shape.reduce((a, b) => a * b);
		const values = s.inputMetadata[0].type === 'uint8' ? Uint8Array : Float32Array;
		const feeds = { [s.inputNames[0]]: new ort.Tensor(s.inputMetadata[0].type, values.from({ length }, (_, i) => (values === Uint8Array ? i * 37 : Math.sin(i))), shape) };
		return repeat(n, () => s.run(feeds));
	},
	async sharp({ picture, n }) {
		const bytes = fs.readFileSync(picture);
		return repeat(n, () => sharp(bytes).resize(224, 224, { fit: 'fill', kernel: 'linear' }).removeAlpha().raw().toBuffer());
	},
};

for await (const line of readline.createInterface({ input: process.stdin })) {
	const command = JSON.parse(line);
	try {
		console.log(JSON.stringify({ cpu: await peers[command.peer](command) }));
	} catch (e) {
		console.log(JSON.stringify({ error: String(e) }));
	}
}
process.exit(0);
