// An origin, an edge, and connections of both the edge and a browser to the origin, which a test stops and cuts.
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startLink, startServer } from '../servers.js';

const { PROGRAM, EDGE_PROGRAM } = process.env;
const person = { name: 'Ada Olsen', email: 'ada@example.org', password: 'quiet-harbour-41' };

/** Runs `scenario` with an origin and with an edge that has joined it. Both have one application, which is empty. */
export async function world(scenario) {
  const folder = await mkdtemp(join(tmpdir(), 'marks-'));
  const data = join(folder, 'origin');
  const links = { edge: await startLink(), browser: await startLink() };
  const args = ['--data', data, '--public-url', links.browser.address, '--rate', '0', '--account-rate', '0'];
  const serveOrigin = (listen) => startServer(PROGRAM, ['--listen', listen, ...args]);
  const operate = async (...args) => (await promisify(execFile)(PROGRAM, [...args, '--data', data])).stdout.trim();
  let origin = await serveOrigin('127.0.0.1:0');
  for (const link of Object.values(links)) link.to(origin.address);
  let edge;
  try {
    const { address } = origin;
    const { cookies, csrf, account } = await signUp(address, await origin.waitForLine(/\/sign-up\?setup=(\S+)/));
    const headers = { Cookie: cookies, 'X-Sightline-CSRF': csrf, Origin: address, 'Content-Type': 'application/json' };
    const made = { name: 'marks', language: 'en', default_model: 'aaa03c23b3724a16a56b629203edc62c' };
    const body = JSON.stringify(made);
    const { app } = await (await fetch(`${address}/console/apps`, { method: 'POST', headers, body })).json();
    const key = await operate('key', 'create', '--app', app.id, '--scopes', 'All');
    const { token } = JSON.parse(await operate('edge', 'create', 'north', '--apps', app.id, '--json'));
    edge = await startServer(EDGE_PROGRAM, [
      ...['--listen', '127.0.0.1:0', '--data', join(folder, 'edge'), '--rate', '0'],
      ...['--origin', links.edge.address, '--token', token],
    ]);
    let running = true;
    await scenario({
      app: app.id,
      key,
      account,
      cookies,
      folder,
      links,
      origin: address,
      edge: edge.address,
      isOriginRunning: () => running,
      readLog: () => readLog(address, app.id, key),
      /** Stops the origin at once. The connections to it are cut before, so the returned log is complete. */
      async stopOrigin() {
        const wasCut = Object.values(links).map((link) => link.isCut);
        for (const link of Object.values(links)) await link.cut();
        const log = await readLog(address, app.id, key);
        running = false;
        await origin.end('SIGKILL');
        for (const [i, link] of Object.values(links).entries()) if (!wasCut[i]) await link.join();
        return log;
      },
      async startOrigin() {
        origin = await serveOrigin(new URL(address).host);
        running = true;
      },
    });
    return [...origin.log, ...edge.log].filter((line) => line.includes('level=ERROR'));
  } finally {
    await Promise.all([edge?.end('SIGINT'), origin.end('SIGINT')]);
    await Promise.all(Object.values(links).map((link) => link.cut()));
    await rm(folder, { recursive: true });
  }
}

/** Creates the first account of an origin, and returns its session. */
async function signUp(address, setup) {
  const before = await fetch(`${address}/console/session`);
  const cookies = (answer) => answer.headers.getSetCookie().map((cookie) => cookie.split(';')[0]);
  const first = (await before.json()).session;
  const headers = {
    Cookie: cookies(before).join('; '),
    'X-Sightline-CSRF': first.csrf,
    Origin: address,
    'Content-Type': 'application/json',
  };
  const body = JSON.stringify({ ...person, setup });
  const answer = await fetch(`${address}/console/accounts`, { method: 'POST', headers, body });
  const { session, status } = await answer.json();
  if (!session) throw new Error(`no account: ${JSON.stringify(status)}`);
  return { cookies: cookies(answer).join('; '), csrf: session.csrf, account: session.account.id };
}

/** Yields the fields of an encoded message: its number, and its value, a number or bytes. */
function* fields(data) {
  let at = 0;
  const varint = () => {
    for (let v = 0n, shift = 0n; ; shift += 7n) {
      const b = data[at++];
      v |= BigInt(b & 127) << shift;
      if (b < 128) return v;
    }
  };
  while (at < data.length) {
    const tag = Number(varint());
    if (tag % 8 === 0) yield [tag >> 3, varint()];
    else if (tag % 8 === 1) {
      yield [tag >> 3, data.readBigUInt64LE(at)];
      at += 8;
    } else {
      const size = Number(varint());
      yield [tag >> 3, data.subarray(at, at + size)];
      at += size;
    }
  }
}

/** Yields the operations in a field of rows: their names, writers and clocks. */
function* operationsIn(rows) {
  for (let at = 0; at < rows.length; ) {
    let size = 0;
    for (let shift = 0; ; shift += 7) {
      const b = rows[at++];
      size |= (b & 127) << shift;
      if (b < 128) break;
    }
    const [[, number], [, seq], [, clock]] = fields(rows.subarray(at + 1, at + size)); // the writer, the sequence and the clock come first
    const writer = number.toString(16).padStart(16, '0');
    yield { name: `${writer}-${seq}`, writer, at: Number(clock >> 16n) };
    at += size;
  }
}

const [part, entries, end] = [1, 5, 8]; // types of frames

/** Returns all operations in the origin's log of an application, in their order, by their names: WRITER-SEQ. at: the clock in milliseconds. */
async function readLog(address, app, key) {
  const headers = { Authorization: `Key ${key}`, Accept: 'application/vnd.sightline.sync', 'Sync-Protocol': '2' };
  const query = `app=${app}&since=0&live=0&only=entries`;
  const answer = await fetch(`${address}/v2/sync/changes?${query}`, { headers });
  if (!answer.ok) throw new Error(`no log: ${answer.status} ${await answer.text()}`);
  const stream = Buffer.from(await answer.arrayBuffer());
  const log = new Map();
  let parts = [];
  for (let at = 0; ; ) {
    const [size, type] = [stream.readUInt32LE(at), stream[at + 4]];
    parts.push(stream.subarray(at + 5, at + 5 + size));
    at += 5 + size;
    if (type === part) continue;
    if (type === end) return log;
    if (type === entries)
      for (const [number, value] of fields(Buffer.concat(parts).subarray(1)))
        if (number === 5) for (const operation of operationsIn(value)) log.set(operation.name, operation);
    parts = [];
  }
}
