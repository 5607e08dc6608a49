// Runs both sides of make bench that live in a browser: one JSON command a line on standard input, one
// JSON answer a line, as peer.mjs.
//
//   {"side":"onnxruntime-web","model":PATH,"n":N}   the network on decoded input, one thread
//   {"side":"ours","picture":PATH,"model":ID,"n":N} a /v2 predict of a picture by base64, in the page's own core
//
// The answer is {"cpu":ms}: a page cannot see its CPU time, so it is the clock's, the mean of N repetitions. Both
// sides are pages of one Chromium; the one that is not asked does nothing. Ours is served by bin/sightline on loopback.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { createServer } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { chromium } from 'playwright-core';

const warmUps = 3;
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

/** Serves our pages and the module: an origin on a folder of its own. */
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
const ours = await serveOurs();
const browser = await chromium.launch({
	executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
	args: ['--no-sandbox', '--disable-background-networking', '--disable-component-update', '--disable-background-timer-throttling'],
});
const pages = new Map();

async function page(url) {
	if (!pages.has(url)) {
		const opened = await browser.newPage();
		await opened.goto(url);
		pages.set(url, opened);
	}
	return pages.get(url);
}

const sides = {
	async 'onnxruntime-web'({ model, n }) {
		return (await page(`${peer.url}/`)).evaluate(async ({ model, n, warmUps }) => {
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
		}, { model, n, warmUps });
	},
	async ours({ picture, model, n }) {
		const base64 = fs.readFileSync(picture).toString('base64');
		return (await page(`${ours.url}/`)).evaluate(async ({ base64, model, n, warmUps }) => {
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
		}, { base64, model, n, warmUps });
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
ours.stop();
