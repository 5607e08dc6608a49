// A page that answers /v2 with no server: Chromium with the runtime of web/runtime open, and its service worker, which
// answers the page's own requests from the module. Programs outside reach it by a port of loopback that has no answers
// of its own: each request is made once more by the page, and what came of it goes back.
//
//	client ──▶ port ──▶ page: fetch ──▶ service worker ──▶ tab's engine: the module
//
// The first line of output is the port's address. At the end of its input the browser ends; the exit status is 0 where
// nothing but loopback was asked for anything.
//
//	RUNTIME=FOLDER CHROMIUM=PROGRAM node page.mjs
import { createServer } from 'node:http';
import { Browser, check, serve } from '../../web/runtime/test/pages/browser.js';

const loopback = (url) => url.hostname === '127.0.0.1';
const server = await serve({ connect: 'http://127.0.0.1:*' });
const browser = await Browser.start(server.origin, {
	args: ['--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1', '--proxy-server=direct://'],
	console: (text) => console.error(text),
	isAllowed: loopback,
});
const page = await browser.page();

await page.evaluate(async () => {
	await registerServiceWorker({ scope: '/', answer: '/' });
	const { serviceWorker } = navigator;
	if (!serviceWorker.controller)
		await new Promise((resolve) => serviceWorker.addEventListener('controllerchange', resolve, { once: true }));
});

/** Makes a request in the page. Bodies cross as text with one character a byte. */
function relay(request) {
	return page.evaluate(async ({ method, path, headers, body }) => {
		const bytes = (text) => Uint8Array.from(text, (c) => c.charCodeAt(0));
		try {
			const response = await fetch(path, { method, headers, ...(body && { body: bytes(body) }) });
			let text = '';
			for (const b of new Uint8Array(await response.arrayBuffer())) text += String.fromCharCode(b);
			return { status: response.status, headers: [...response.headers], body: text };
		} catch (failure) {
			return { failed: String(failure) };
		}
	}, request);
}

const port = createServer(async (request, response) => {
	const parts = [];
	for await (const part of request) parts.push(part);
	const headers = Object.entries(request.headers).filter(([name]) => /^(authorization|content-type|accept|x-.*)$/.test(name));
	const body = Buffer.concat(parts).toString('latin1');
	const answer = await relay({ method: request.method, path: request.url, headers, body })
		.catch((failure) => ({ failed: String(failure) })); // the browser may end during a last request
	if (answer.failed) return request.socket.destroy(); // as a server that goes away
	response.writeHead(answer.status, answer.headers).end(Buffer.from(answer.body, 'latin1'));
});
await new Promise((resolve) => port.listen(0, '127.0.0.1', resolve));
const address = `http://127.0.0.1:${port.address().port}`;
await page.evaluate((publicUrl) => open({ publicUrl }), address);

// The page's server has no /v2, so that whatever is answered there is the service worker's.
check((await fetch(`${server.origin}/v2/models`)).status === 404, 'the server of the page answers /v2');
const { status } = await (await fetch(`${address}/v2/models`)).json();
check(status?.code === 10000, `the page answers ${JSON.stringify(status)}`);
console.log(address);

for await (const _ of process.stdin);
const paths = [...server.requestCounts.keys()].filter((path) => /^\/(v2|hosted)\//.test(path));
check(paths.length <= 1, `the server of the page was asked for ${paths}`); // by the check above
await browser.close(); // which tells of requests to other hosts
browser.forget();
process.exit();
