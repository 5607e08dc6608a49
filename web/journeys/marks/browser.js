// The thread of a page in Node: it defines what the modules of a page expect of a browser, and then loads them.
import { workerData } from 'node:worker_threads';

const { url, local, session, cookies, page } = workerData;

const storage = (values) => ({
  getItem: (name) => values[name] ?? null,
  setItem: (name, value) => {
    values[name] = String(value);
  },
  removeItem: (name) => delete values[name],
});

const define = (name, value) => Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
define('operations', []);
define('addEventListener', () => {});
define('document', { visibilityState: 'visible', documentElement: {}, querySelector: () => null });
define('navigator', { onLine: true, language: 'en', languages: ['en'] });
define('location', new URL(url));
define('localStorage', storage(local));
define('sessionStorage', storage(session));

/** Notes the names of the operations that an answer has. */
export function noteOperations(answer) {
  const names = answer.headers.get('X-Sightline-Operations');
  if (names) globalThis.operations.push(names);
  return answer;
}

const send = globalThis.fetch;
define('fetch', async (path, init = {}) => {
  const headers = new Headers(init.headers);
  headers.set('Origin', url);
  if (cookies) headers.set('Cookie', cookies);
  return noteOperations(await send(new URL(path, url), { ...init, headers }));
});

await import(page);
