// A demonstration in separate processes: an origin, which a journey can stop and start again, and edges.
import { spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { closePages, setOrigin, timeoutMillis } from './browser.js';

/**
 * Starts a demonstration with `edgeCount` edges, runs `scenario` with it and ends it. `scenario` gets the URLs, and functions that stop
 * and start the origin.
 */
export async function demonstration(edgeCount, scenario) {
  const folder = await mkdtemp(join(tmpdir(), 'demonstration-'));
  const args = ['demo', '--edges', String(edgeCount), '--listen', '127.0.0.1:0', '--data', join(folder, 'data')];
  const program = spawn(process.env.PROGRAM, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const exit = new Promise((resolve) => program.once('exit', resolve));
  const lines = createInterface({ input: program.stdout });
  const waitForLine = (text) =>
    new Promise((resolve, reject) => {
      const onLine = (line) => {
        if (!line.includes(text)) return;
        lines.off('line', onLine);
        resolve(line);
      };
      lines.on('line', onLine);
      void exit.then(() => reject(new Error('the demonstration has ended')));
    });
  const toggleOrigin = async (text) => {
    const answer = waitForLine(text);
    program.stdin.write('o\n');
    await answer;
  };
  const address = (line) => line.match(/: (http:\S+)$/)[1];
  try {
    const [[origin, startupSeconds], ...edgeUrls] = await Promise.all([
      waitForLine('Sightline: ').then(async (line) => [address(line), await processorTime(program.pid)]),
      ...Array.from({ length: edgeCount }, (_, i) => waitForLine(`edge-${i + 1}: `).then(address)),
    ]);
    setOrigin(origin);
    await scenario({
      origin,
      edges: edgeUrls,
      processorTime: startupSeconds,
      remoteAddresses: () => remoteAddresses(program.pid),
      stopOrigin: () => toggleOrigin('The origin is stopped'),
      startOrigin: () => toggleOrigin('The origin is running'),
      freezeOrigin: () => signalOrigin(program.pid, 'SIGSTOP'),
      thawOrigin: () => signalOrigin(program.pid, 'SIGCONT'),
    });
    await closePages();
  } finally {
    program.kill('SIGINT');
    await exit;
    await rm(folder, { recursive: true });
  }
}

/** Reads a file or a folder of a process in /proc. Returns `fallback` if the process, or its thread, has ended. */
const readProc = (path, fallback, read = (file) => readFile(file, 'utf8')) =>
  read(`/proc/${path}`).catch((failure) => {
    if (!['ENOENT', 'ESRCH'].includes(failure.code)) throw failure;
    return fallback;
  });

/** Returns the ids of a process and of all processes that it has started. */
async function processTree(pid) {
  const tasks = await readProc(`${pid}/task`, [], readdir);
  const lines = await Promise.all(tasks.map((task) => readProc(`${pid}/task/${task}/children`, '')));
  const children = lines.flatMap((line) => line.trim().split(' ')).filter(Boolean);
  return [pid, ...(await Promise.all(children.map(processTree))).flat()];
}

/** Sends a signal to the origin of a demonstration. A frozen origin accepts connections and never answers. */
async function signalOrigin(pid, name) {
  for (const id of await processTree(pid)) {
    const words = (await readProc(`${id}/cmdline`, '')).split('\0');
    if (words[1] === 'serve' && !words.includes('--origin')) process.kill(id, name);
  }
}

/** Returns the processor time, in seconds, of a process and its descendants. Other work on the machine does not change it. */
async function processorTime(pid) {
  let ticks = 0;
  for (const id of await processTree(pid)) {
    const fields = (await readProc(`${id}/stat`, '')).replace(/^.*\) /s, '').split(' ');
    ticks += Number(fields[11] ?? 0) + Number(fields[12] ?? 0);
  }
  return ticks / 100;
}

/** Returns the addresses outside this machine to which a process or one of its descendants is connected. */
async function remoteAddresses(pid) {
  const found = [];
  for (const id of await processTree(pid)) {
    const files = await readProc(`${id}/fd`, [], readdir);
    const openFiles = new Set(
      await Promise.all(files.map((file) => readlink(`/proc/${id}/fd/${file}`).catch(() => ''))),
    );
    for (const table of ['tcp', 'tcp6', 'udp', 'udp6']) {
      for (const line of (await readProc(`${id}/net/${table}`, '')).split('\n').slice(1)) {
        const [, , remote, , , , , , , inode] = line.trim().split(/\s+/);
        if (openFiles.has(`socket:[${inode}]`) && !localAddress.test(remote)) found.push(`${table} ${remote}`);
      }
    }
  }
  return found;
}

// Local addresses in the kernel's notation: none, 127.0.0.0/8, ::1, and 127.0.0.0/8 within IPv6.
const localAddress = /^(0+|\w{6}7F|0{24}01000000|0{16}FFFF0000\w{6}7F):/i;

/** Creates a key of an application with the calls of its owner's page. `t` is signed in. */
export function newKey(t, app) {
  return t.page.evaluate(async (app) => {
    const { session } = await (await fetch('/console/session')).json();
    const { scopes } = await (await fetch('/console/scopes')).json();
    const answer = await fetch(`/console/apps/${app}/keys`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Sightline-CSRF': session.csrf },
      body: JSON.stringify({ description: 'A journey', scopes: scopes.map((s) => s.name) }),
    });
    const { key } = await answer.json();
    return key.key ?? key.secret ?? key;
  }, app);
}

/** Creates an empty application with the calls of its owner's page, and returns its id. `t` is signed in. */
export function newApp(t) {
  return t.page.evaluate(async () => {
    const { session } = await (await fetch('/console/session')).json();
    const answer = await fetch('/console/apps', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Sightline-CSRF': session.csrf },
      body: JSON.stringify({ name: 'Harbour watch', language: 'en', default_model: '' }),
    });
    return (await answer.json()).app.id;
  });
}

/** Returns a function that calls /v2 at a server, with a key, and returns the JSON of the answer. */
export function caller(url, key) {
  return async (method, path, body) => {
    const headers = { Authorization: `Key ${key}`, 'Content-Type': 'application/json' };
    const answer = await fetch(`${url}/v2${path}`, { method, headers, body: body && JSON.stringify(body) });
    return answer.json();
  };
}

/** Calls `getAnswer` until `isDone` accepts the answer, and returns the answer. */
export async function pollUntil(getAnswer, isDone, label) {
  const deadline = Date.now() + timeoutMillis;
  for (;;) {
    const answer = await getAnswer();
    if (isDone(answer)) return answer;
    if (Date.now() > deadline) throw new Error(`${label}: ${JSON.stringify(answer)}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
