// Runs the sides of make bench that run in a browser. It reads one JSON command a line from standard input and
// writes one JSON answer a line, as peer.mjs does.
//
//   {"side":"onnxruntime-web","model":PATH,"n":N}  the network on decoded input
//   {"side":"ours","picture":PATH,"n":N}           our network: from a bitmap of the network's size to concepts
//   {"side":"v2","picture":PATH,"model":ID,"n":N}  a complete predict call of /v2 by base64, by the page's runtime; no peer has it
//
// The answer is {"cpu":ms}, the mean of N repetitions. It is wall time, because a page cannot measure its CPU time. All
// sides are pages of one Chromium, and the other pages are idle meanwhile. The first two compute only in the main thread of
// their page, and the last in two workers, one of which has the data. bin/sightline serves our pages on loopback.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { createServer } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { chromium } from 'playwright-core';

const warmUps = 3;
const firstWarmUps = 60; // warm-ups of a new page: until then V8 still runs its baseline code
const types = { '.mjs': 'text/javascript', '.wasm': 'application/wasm', '.html': 'text/html' };
const peerFiles = path.resolve('node_modules/onnxruntime-web/dist');

/** Serves the peer's files, an empty page and, below /model, any file by its path. */
function servePeer() {
	const server = createServer((request, response) => {
		const name = decodeURIComponent(new URL(request.url, 'http://x').pathname);
		if (name === '/') return response.setHeader('Content-Type', 'text/html').end('<!doctype html><title>peer</title>');
		const file = name.startsWith('/model/') ? name.slice('/model'.length) : path.join(peerFiles, path.basename(name));
		response.setHeader('Content-Type', types[path.extname(file)] ?? 'application/octet-stream');
		fs.createReadStream(file).on('error', () => response.writeHead(404).end()).pipe(response);
	});
	return new Promise((resolve) => {
		server.listen(0, '127.0.0.1', () => resolve({ url: `http://127.0.0.1:${server.address().port}`, stop: () => server.close() }));
	});
}

/** Starts an origin on a new data folder. It serves our pages and the module. */
function serveOurs() {
	const data = fs.mkdtempSync(path.join(os.tmpdir(), 'peers-'));
	const origin = spawn('../../bin/sightline', ['serve', '--listen', '127.0.0.1:0', '--data', data, '--log-format', 'json']);
	const stop = () => {
		origin.kill('SIGTERM');
		origin.on('exit', () => fs.rmSync(data, { recursive: true, force: true }));
	};
	return new Promise((resolve, reject) => {
		readline.createInterface({ input: origin.stderr }).on('line', (line) => {
			const address = /"msg":"serving","address":"([^"]+)"/.exec(line)?.[1];
			if (address) resolve({ url: `http://${address}`, stop });
		});
		origin.on('error', reject);
		origin.on('exit', (code) => reject(new Error(`bin/sightline ended with ${code}`)));
	});
}

const peer = await servePeer();
const server = await serveOurs();
const browser = await chromium.launch({
	executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
	args: [
		'--no-sandbox',
		'--disable-background-networking',
		'--disable-component-update',
		'--disable-background-timer-throttling', // the pages are open at the same time
		'--disable-backgrounding-occluded-windows',
		'--disable-renderer-backgrounding',
	],
});
const pages = new Map();

/** Runs a function in the page of a side. The first call opens the page. */
async function inPage(side, url, run, input) {
	const first = !pages.has(side);
	if (first) {
		const newPage = await browser.newPage();
		await newPage.goto(url);
		pages.set(side, newPage);
	}
	return pages.get(side).evaluate(run, { ...input, warmUps: first ? firstWarmUps : warmUps });
}

const sides = {
	async 'onnxruntime-web'({ model, n }) {
		return inPage('peer', `${peer.url}/`, async ({ model, n, warmUps }) => {
			const ort = await import('/ort.wasm.min.mjs');
			ort.env.wasm.numThreads = 1;
			ort.env.wasm.wasmPaths = '/';
			globalThis.session ??= await ort.InferenceSession.create(`/model${model}`, { executionProviders: ['wasm'], graphOptimizationLevel: 'all' });
			const shape = globalThis.session.inputMetadata[0].shape.map((d) => (typeof d === 'number' && d > 0 ? d : 1));
			const length = shape.reduce((a, b) => a * b);
			const feeds = { [globalThis.session.inputNames[0]]: new ort.Tensor('float32', Float32Array.from({ length }, (_, i) => Math.sin(i)), shape) };
			let start = 0;
			for (let i = -warmUps; i < n; i++) {
				if (i === 0) start = performance.now();
				await globalThis.session.run(feeds);
			}
			return (performance.now() - start) / n;
		}, { model, n });
	},
	async ours({ picture, n }) {
		const base64 = fs.readFileSync(picture).toString('base64');
		return inPage('ours', `${server.url}/`, async ({ base64, n, warmUps }) => {
			const { Guest, compile, system } = await import('/runtime/guest.js');
			const { load, served } = await import('/runtime/load.js');
			const { decodeResult, encodeJob } = await import('/runtime/messages.js');
			const concepts = 1; // the bit of `want` for concepts
			const open = async () => {
				const loaded = await load(served(new URL('/runtime/', location.href)), () => {});
				const services = { ...system, bundle: (name) => loaded.bundles.get(name) };
				const settings = { role: 'analyser', store: 'memory', bundles: [...loaded.bundles.keys()], checked: true, memory: 128 << 20 };
				return Guest.open(await compile(loaded.guest, loaded.kernels), services, settings);
			};
			globalThis.guest ??= await open();
			const data = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
			let start = 0;
			for (let i = -warmUps; i < n; i++) {
				if (i === 0) start = performance.now();
				const result = decodeResult(globalThis.guest.call('analyse', encodeJob({ want: concepts }, data)));
				if (!result.analysis) throw new Error(`error ${result.error} ${result.text}`);
			}
			return (performance.now() - start) / n;
		}, { base64, n });
	},
	async v2({ picture, model, n }) {
		const base64 = fs.readFileSync(picture).toString('base64');
		return inPage('v2', `${server.url}/`, async ({ base64, model, n, warmUps }) => {
			const { Sightline } = await import('/runtime/index.js');
			globalThis.sightline ??= await Sightline.open({ base: '/runtime/', store: 'memory', workers: 1 });
			const body = JSON.stringify({ inputs: [{ data: { image: { base64 } } }] });
			let start = 0;
			for (let i = -warmUps; i < n; i++) {
				if (i === 0) start = performance.now();
				const answer = await globalThis.sightline.fetch(`/v2/models/${model}/outputs`, { method: 'POST', body });
				if (answer.status !== 200) throw new Error(await answer.text());
				await answer.json();
			}
			return (performance.now() - start) / n;
		}, { base64, model, n });
	},
};

for await (const line of readline.createInterface({ input: process.stdin })) {
	const command = JSON.parse(line);
	try {
		console.log(JSON.stringify({ cpu: await sides[command.side](command) }));
	} catch (e) {
		console.log(JSON.stringify({ error: String(e) }));
	}
}
await browser.close();
peer.stop();
server.stop();
