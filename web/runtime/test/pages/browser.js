// A browser for tests of the runtime: a server of its files on loopback, empty pages, and a check that no request goes to another host.
import { createReadStream, existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { request as ask, createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { extname, join, normalize } from 'node:path';
import { chromium } from 'playwright-core';

const { RUNTIME, SAMPLES, CHROMIUM } = process.env; // the folders of the runtime and of the samples, and the browser's path

/** Fails with the message `message` unless `condition` is true. */
export function check(condition, message) {
  if (!condition) throw new Error(message);
}

/** Fails if two values do not have the same JSON. */
export function same(got, want, label) {
  check(JSON.stringify(got) === JSON.stringify(want), `${label}: ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
}

const kinds = {
  '.js': 'text/javascript',
  '.wasm': 'application/wasm',
  '.json': 'application/json',
  '.jpg': 'image/jpeg',
};
const policy = (connect) =>
  `default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self' ${connect}; img-src 'self' blob:`;

/**
 * Serves the runtime as the real server does, the samples, the files of the folder `extraFolder` at `/lent/`, and an empty page at every
 * other path. It counts requests by path. The content security policy lets pages reach this server and the hosts in `connect`. If `origin`
 * is set, the server forwards requests below /v2 and /hosted to it.
 */
export function serve({ extraFolder = '', connect = '', origin } = {}) {
  const requestCounts = new Map(); // path → times
  let isDown = false;
  const forward = (from, response) => {
    const { method, headers, url } = from;
    const on = ask(origin + url, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
      answer.on('error', () => response.destroy());
    });
    on.on('error', () => response.destroy());
    response.on('close', () => on.destroy());
    from.pipe(on);
  };
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, 'http://x');
    if (isDown) return request.socket.destroy();
    requestCounts.set(pathname, (requestCounts.get(pathname) ?? 0) + 1);
    const [, folder, rest] = pathname.match(/^\/(runtime|samples|lent)\/(.*)/) ?? [];
    const headers = { 'Content-Security-Policy': policy(connect), 'Cross-Origin-Opener-Policy': 'same-origin' };
    if (pathname === '/shell.json') {
      const scripts = readdirSync(RUNTIME).filter((name) => name.endsWith('.js'));
      const shell = ['/', ...scripts.map((name) => `/runtime/${name}`)];
      return response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(shell));
    }
    if (origin && /^\/(v2|hosted)\//.test(pathname)) return forward(request, response);
    if (!folder) {
      if (/^\/(v2|hosted|local)\//.test(pathname)) return response.writeHead(404).end();
      return response
        .writeHead(200, { ...headers, 'Content-Type': 'text/html' })
        .end('<!doctype html><title>Page</title>');
    }
    const path = join({ runtime: RUNTIME, samples: SAMPLES, lent: extraFolder }[folder], normalize(`/${rest}`));
    if (!existsSync(path) || !statSync(path).isFile()) return response.writeHead(404).end();
    const immutable = /-[0-9a-f]{16}\./.test(rest);
    response.writeHead(200, {
      ...headers,
      'Content-Type': kinds[extname(path)] ?? 'application/octet-stream',
      'Content-Length': statSync(path).size,
      'Cache-Control': immutable ? 'public, max-age=31536000, immutable' : 'no-cache',
      ...(rest === 'serviceWorker.js' && { 'Service-Worker-Allowed': '/' }),
    });
    createReadStream(path).pipe(response);
  });
  return new Promise((resolve) =>
    server.listen(0, '127.0.0.1', () =>
      resolve({
        origin: `http://127.0.0.1:${server.address().port}`,
        requestCounts,
        /** Closes all connections. The server then answers no request until `back`. */
        leave: () => {
          isDown = true;
          server.closeAllConnections();
        },
        back: () => {
          isDown = false;
        },
        close: () => server.close(),
      }),
    ),
  );
}

const quiet = [
  '--no-sandbox', // tests run as root in containers
  '--disable-background-networking',
  '--disable-breakpad',
  '--disable-component-update',
  '--disable-default-apps',
  '--disable-dev-shm-usage',
  '--disable-domain-reliability',
  '--disable-extensions',
  '--disable-gpu',
  '--disable-sync',
  '--metrics-recording-only',
  '--no-default-browser-check',
  '--no-first-run',
  '--no-pings',
];

/**
 * A browser with a separate profile. The profile exists until `forget`, also after the browser has ended. If `isPrivate` is set, the pages
 * are in a private window, whose files end with it. A request to an origin other than the pages' is a fault, unless `isAllowed` accepts its
 * URL.
 */
export class Browser {
  static async start(
    origin,
    {
      profile = mkdtempSync(join(tmpdir(), 'runtime-browser-')),
      args = [],
      isPrivate = false,
      console: onLine,
      isAllowed = () => false,
    } = {},
  ) {
    const b = new Browser();
    b.profile = profile;
    process.on('exit', () => b.forget()); // also after a failed test
    b.origin = origin;
    b.faults = [];
    const options = { executablePath: CHROMIUM, args: [...quiet, ...args] };
    if (isPrivate) {
      b.process = await chromium.launch(options);
      b.context = await b.process.newContext({ baseURL: origin });
    } else b.context = await chromium.launchPersistentContext(profile, { ...options, baseURL: origin });
    b.context.setDefaultTimeout(120_000);
    b.context.on('request', (request) => {
      const url = new URL(request.url());
      if (!['data:', 'blob:'].includes(url.protocol) && url.origin !== origin && !isAllowed(url))
        b.faults.push(`a request to ${url.href}`);
    });
    b.context.on('console', (m) => onLine?.(m.text()));
    return b;
  }

  /** A page on which `open` opens the runtime as `s`, and `call` makes a call with JSON. */
  async page(path = '/') {
    const page = await this.context.newPage();
    page.on('pageerror', (failure) => this.faults.push(String(failure)));
    await page.goto(path);
    await page.evaluate(prepare);
    return page;
  }

  async close() {
    await this.context.close();
    await this.process?.close();
    same(this.faults, [], 'faults');
  }

  forget() {
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Runs in the page: defines the functions that tests call there. */
async function prepare() {
  const { Sightline, registerServiceWorker } = await import('/runtime/index.js');
  Object.assign(globalThis, { Sightline, registerServiceWorker });
  globalThis.open = async (options = {}) => {
    const stages = [];
    const since = performance.now();
    globalThis.s = await Sightline.open({ onProgress: (p) => stages.push(p), ...options });
    return { took: performance.now() - since, stages, store: s.store, owner: s.owner };
  };
  globalThis.call = async (method, path, body, fetcher = (...args) => s.fetch(...args)) => {
    const response = await fetcher(path, { method, ...(body && { body: JSON.stringify(body) }) });
    return { status: response.status, ...(await response.json()) };
  };
  globalThis.picture = async (name) => {
    const blob = await (await fetch(`/samples/${name}`)).blob();
    const url = await new Promise((resolve) => {
      const reader = new FileReader();
      reader.onload = () => resolve(reader.result);
      reader.readAsDataURL(blob);
    });
    return url.slice(url.indexOf(',') + 1);
  };
}

/** Runs the steps of a test, prints a line for each successful one, and ends the process. */
export async function way(steps) {
  let stepName = 'the start';
  try {
    await steps(async (name, take) => {
      stepName = name;
      const start = performance.now();
      const detail = await take();
      console.log(`ok ${name} (${((performance.now() - start) / 1000).toFixed(1)} s)${detail ? `: ${detail}` : ''}`);
    });
  } catch (failure) {
    console.log(`${stepName}: ${failure?.stack ?? failure}`);
    process.exitCode = 1;
  }
  process.exit();
}
