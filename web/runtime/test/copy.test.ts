import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type TestContext } from 'node:test';
import { copyStart } from '../src/client.ts';
import { Copy, type CopyStatus } from '../src/copy.ts';
import { Credential } from '../src/credential.ts';
import { Reader, Writer } from '../src/envelope.ts';
import { Asker } from '../src/host.ts';
import { type JoinError, join } from '../src/origin.ts';

const app = '0123456789abcdef0123456789abcdef';

/** An origin on loopback that answers with the function `answer`. */
async function origin(t: TestContext, answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(answer);
  await new Promise<void>((r) => server.listen(0, '127.0.0.1', r));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const token = (iat: number, exp: number) =>
  `Bearer x.${Buffer.from(JSON.stringify({ iat, exp })).toString('base64url')}.y`;

test('a credential is requested once, and again after a refusal or shortly before it expires', async () => {
  const values = ['Key a', 'Key b', token(1000, 1900), token(5, 20), 'Bearer opaque', 'Bearer a.b.c'];
  let calls = 0;
  const c = new Credential(async () => values[calls++] ?? '');
  const both = await Promise.all([c.get(), c.get()]);
  assert.deepEqual([both, await c.get(), calls], [['Key a', 'Key a'], 'Key a', 1]);
  c.refuse('another');
  assert.equal(await c.get(), 'Key a');
  c.refuse('Key a');
  assert.equal(await c.get(), 'Key b');
  c.refuse('Key b');
  assert.equal(await c.get(), values[2]); // a token that is valid for 15 minutes is used again, although it has expired by the local clock
  assert.equal(await c.get(), values[2]);
  c.refuse(values[2] as string);
  assert.equal(await c.get(), values[3]); // this token expires within 30 seconds, so it is used only once
  assert.equal(await c.get(), 'Bearer opaque');
  assert.equal(await c.get(), 'Bearer opaque');
  c.refuse('Bearer opaque');
  assert.equal(await c.get(), 'Bearer a.b.c');
  assert.equal(await c.get(), 'Bearer a.b.c');
  const mute = new Credential(() => Promise.reject(new Error('signed out')));
  await assert.rejects(mute.get(), /signed out/);
  await assert.rejects(mute.get(), /signed out/);
});

test('a page answers with a credential, refuses it, or does not answer in time', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const ids: number[] = [];
  const asker = new Asker((m) => void ('credential' in m && ids.push(m.credential)));
  const all = [asker.ask(), asker.ask(), asker.ask()];
  asker.take({ credential: ids[1] as number, refused: 'signed out' });
  asker.take({ credential: ids[0] as number, value: 'Key k' });
  asker.take({ credential: 99, value: 'nobody asked' });
  t.mock.timers.tick(20_000);
  const outcomes = (await Promise.allSettled(all)).map((s) => (s.status === 'fulfilled' ? s.value : s.reason.message));
  assert.deepEqual(outcomes, ['Key k', 'signed out', 'the page does not say in time']);
});

test('the options of a replica are checked', () => {
  const credential = async () => '';
  const start = (o: string, pageOrigin?: string) => copyStart({ origin: o, app, credential }, pageOrigin).origin;
  assert.equal(start('https://a.example/'), 'https://a.example');
  assert.equal(start('', 'http://plain.example'), 'http://plain.example');
  assert.equal(start('http://plain.example', 'http://plain.example'), 'http://plain.example');
  assert.equal(start('http://127.0.0.1:8080'), 'http://127.0.0.1:8080');
  for (const bad of ['http://a.example', 'ftp://a.example', 'a.example', ''])
    assert.throws(() => start(bad), TypeError);
  assert.throws(() => copyStart({ origin: 'https://a.example', app: 'ABC', credential }), TypeError);
  const all = copyStart({ origin: 'https://a.example', app, credential, name: 'n', pictures: 'eager', offline: true });
  assert.deepEqual(all, { origin: 'https://a.example', app, name: 'n', pictures: 'eager', offline: true });
});

const frame = (type: number, body: Uint8Array) => {
  const head = Buffer.alloc(5);
  head.writeUInt32LE(body.length);
  head[4] = type;
  return Buffer.concat([head, body]);
};

test('the runtime downloads the app record and checks it', async (t) => {
  const data = new Uint8Array(70_000).fill(7);
  const register = Writer.envelope().text(1, app).uint(2, 12).raw(3, data).finish();
  const stream = Buffer.concat([
    frame(128, Buffer.from('passed over')),
    frame(1, register.subarray(0, 40_000)),
    frame(4, register.subarray(40_000)),
    frame(8, Writer.envelope().uint(1, 2).finish()),
  ]);
  const requests: string[] = [];
  let answer: (r: ServerResponse) => void = () => {};
  const base = await origin(t, (request, response) => {
    requests.push(`${request.url} ${request.headers['sync-protocol']} ${request.headers.authorization}`);
    answer(response);
  });
  const respond = (status: number, kind: string, body: Uint8Array | string) => (r: ServerResponse) =>
    void r.writeHead(status, { 'Content-Type': kind }).end(body);
  const sync = 'application/vnd.sightline.sync';
  answer = (r) => {
    r.writeHead(200, { 'Content-Type': sync });
    for (let at = 0; at < stream.length; at += 30_000) r.write(stream.subarray(at, at + 30_000));
    r.end();
  };
  const credential = new Credential(async () => 'Key k');
  const signedOut = new Credential(() => Promise.reject(new Error('signed out')));
  const record = await join(base, app, credential);
  assert.equal(record.seq, 12);
  assert.deepEqual(record.data, data);
  assert.deepEqual(requests, [`/v2/sync/changes?app=${app}&since=0&register=0&live=0 2 Key k`]);

  requests.length = 0;
  await join(base, app, signedOut); // so that the origin still reports whether the application was deleted
  assert.deepEqual(requests, [`/v2/sync/changes?app=${app}&since=0&register=0&live=0 2 Bearer none`]);

  const refusal = (detail: string) => Writer.envelope().uint(1, 13).text(2, detail).finish();
  const failures: [string, RegExp, (r: ServerResponse) => void][] = [
    ['GoneError', /was deleted/, respond(410, sync, refusal('it was deleted'))],
    ['NotFoundError', /no application with this id/, respond(404, sync, refusal(''))],
    ['NotAllowedError', /status 401/, respond(401, 'application/json', '{}')],
    ['NotAllowedError', /another's/, respond(403, sync, refusal("another's"))],
    ['OriginError', /status 500/, respond(500, 'text/html', 'oops')],
    ['OriginError', /returned no record/, respond(200, sync, frame(8, Writer.envelope().uint(1, 1).finish()))],
    ['OriginError', /too large/, respond(200, sync, frame(1, new Uint8Array(4)).fill(0xff, 0, 4))],
    ['NetworkError', /first start/, (r) => r.destroy()],
  ];
  for (const [name, words, respond] of failures) {
    answer = respond;
    await assert.rejects(join(base, app, credential), (failure: JoinError) => {
      assert.equal(failure.name, name);
      assert.match(failure.message, words);
      return true;
    });
  }
});

/** A machine that returns the effects that a test sets, and records the events that it receives. */
class Script {
  events: { kind: number; id: number; status: number; body: string; more: boolean; error: string }[] = [];
  effects: Writer[] = []; // the effects that the next event returns
  status = new Writer().uint(1, 6);
  apiStatus: Partial<CopyStatus> = {};
  failures: unknown[] = [];
  purges: [string, boolean][] = [];
  die = false;

  handleEvent = (event: Uint8Array): Uint8Array => {
    if (this.die) throw new Error('trap');
    const e = { kind: 0, id: 0, status: 0, body: '', more: false, error: '' };
    for (const r = Reader.envelope(event); r.next(); ) {
      if (r.number === 1) e.kind = r.uint();
      if (r.number === 2) e.id = r.uint();
      if (r.number === 3) e.status = r.uint();
      if (r.number === 5) e.more = r.bool();
      if (r.number === 6) e.error = r.text();
      if (r.number === 15) e.body = new TextDecoder().decode(r.raw());
    }
    this.events.push(e);
    const w = Writer.envelope().message(2, this.status);
    for (const x of this.effects.splice(0)) w.message(3, x);
    return w.finish();
  };
}

const ask = (id: number, path: string) => new Writer().uint(1, 1).uint(2, id).text(3, 'GET').text(4, path);
const kinds = { status: 0, begin: 1, wake: 2, local: 3, answer: 4, need: 5, offline: 6, online: 7, stop: 8 };

const baseStatus: CopyStatus = {
  app_id: app,
  origin: 'http://127.0.0.1:1',
  phase: 'current',
  writer: '3',
  cursor: 8,
  head: 9,
  queued: 0,
  sent: 0,
  conflicts: 0,
};

function copyOf(base: string, script: Script, values = ['Key k'], device?: string) {
  const statuses: CopyStatus[] = [];
  let credentialCalls = 0;
  const credential = new Credential(async () => values[Math.min(credentialCalls++, values.length - 1)] as string);
  const onChange = (status: CopyStatus) => void statuses.push(status);
  const copy = new Copy(
    { origin: base, app, pictures: 'lazy', credential, onChange, ...(device && { device }) },
    {
      handleEvent: script.handleEvent,
      status: () => ({ ...baseStatus, ...script.apiStatus }),
      onFailure: (failure) => void script.failures.push(failure),
      onPurge: (reason, keepStore) => void script.purges.push([reason, keepStore]),
    },
  );
  return { copy, statuses, credentialCalls: () => credentialCalls };
}

const until = async (condition: () => boolean) => {
  while (!condition()) await new Promise((r) => setImmediate(r));
};

test('the runtime makes the requests of the machine, and passes on the chunks of their answers', async (t) => {
  const requests: string[] = [];
  const responses: ServerResponse[] = [];
  const base = await origin(t, (request, response) => {
    requests.push(`${request.method} ${request.url} ${request.headers.authorization}`);
    if (request.url === '/stream') {
      response.writeHead(200).write('one ');
      responses.push(response);
    } else if (request.url === '/cut') {
      response.writeHead(200, { 'Content-Length': 10 }).write('some');
      setImmediate(() => setImmediate(() => response.destroy()));
    } else if (request.headers.authorization === 'Key old') response.writeHead(401).end('no');
    else response.writeHead(204).end();
  });
  const script = new Script();
  const { copy, credentialCalls } = copyOf(base, script, ['Key old', 'Key new']);
  script.effects = [ask(1, '/plain')];
  copy.begin();
  await until(() => script.events.some((e) => e.kind === kinds.answer && e.id === 1));
  assert.deepEqual([requests, credentialCalls()], [['GET /plain Key old', 'GET /plain Key new'], 2]);
  assert.deepEqual(script.events.at(-1), { kind: kinds.answer, id: 1, status: 204, body: '', more: false, error: '' });

  script.effects = [ask(2, '/stream')];
  copy.noteLocalChange();
  const pieces = () => script.events.filter((e) => e.id === 2);
  await until(() => pieces().length === 1);
  assert.deepEqual(pieces()[0], { kind: kinds.answer, id: 2, status: 200, body: 'one ', more: true, error: '' });
  responses[0]?.end('two');
  await until(() => pieces().at(-1)?.more === false);
  assert.equal(
    pieces()
      .map((e) => e.body)
      .join(''),
    'one two',
  );
  assert.equal(pieces().at(-1)?.status, 0);

  script.effects = [ask(3, '/cut')];
  copy.noteLocalChange();
  await until(() => script.events.some((e) => e.id === 3 && !e.more));
  assert.notEqual(script.events.findLast((e) => e.id === 3)?.error, '');

  script.effects = [ask(4, '/stream')];
  copy.noteLocalChange();
  await until(() => script.events.some((e) => e.id === 4));
  script.effects = [new Writer().uint(1, 2).uint(2, 4)];
  const closed = new Promise<void>((r) => responses[1]?.on('close', r));
  copy.noteLocalChange();
  await closed;
  assert.ok(
    script.events.filter((e) => e.id === 4).every((e) => e.more),
    'an answer that nobody wants ends',
  );

  script.effects = [ask(5, '/stream')];
  copy.noteLocalChange();
  await until(() => script.events.some((e) => e.id === 5));
  copy.begin(); // another instance of the machine: the requests of the previous one are cancelled
  await until(() => responses[2]?.destroyed === true);
  script.effects = [new Writer().uint(1, 3)];
  copy.noteLocalChange(); // the effect asks for a wake-up at a time in the past
  await until(() => script.events.at(-1)?.kind === kinds.wake);
  copy.stop();
  assert.equal(script.events.at(-1)?.kind, kinds.stop);
  const { length } = script.events;
  copy.noteLocalChange();
  copy.stop();
  assert.equal(script.events.length, length, 'events after the end');
});

test('sessions and streams have the ID of the device', async (t) => {
  const requests: string[] = [];
  const base = await origin(t, (request, response) => {
    requests.push(request.url ?? '');
    response.writeHead(204).end();
  });
  const device = '00112233445566778899aabbccddeeff';
  const script = new Script();
  const { copy } = copyOf(base, script, ['Key k'], device);
  script.effects = [ask(1, '/v2/sync/session'), ask(2, '/v2/sync/changes').text(5, 'since=3'), ask(3, '/v2/sync/push')];
  copy.begin();
  await until(() => requests.length === 3);
  copy.stop();
  assert.deepEqual(requests.sort(), [
    `/v2/sync/changes?since=3&device=page-${device}`,
    '/v2/sync/push',
    `/v2/sync/session?device=page-${device}`,
  ]);
});

test('a request to an unreachable origin ends with an error', async () => {
  const script = new Script();
  const { copy } = copyOf('http://127.0.0.1:1', script);
  script.effects = [ask(1, '/any')];
  copy.begin();
  await until(() => script.events.some((e) => e.error !== ''));
  copy.stop();
});

test('a requested picture is downloaded, or fails while the origin is unreachable', async () => {
  const script = new Script();
  const { copy } = copyOf('http://127.0.0.1:1', script);
  copy.begin();
  const [one, two] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];
  const gotEffect = (blob: Uint8Array) => new Writer().uint(1, 4).raw(9, blob);
  const first = copy.need(one);
  script.effects = [gotEffect(one), gotEffect(two).message(10, new Writer().uint(1, 10).text(2, 'no such blob'))];
  const second = assert.rejects(copy.need(two), /no such blob/);
  await Promise.all([first, second]);
  copy.offline(true);
  assert.equal(script.events.filter((e) => e.kind === kinds.offline).length, 1);
  await assert.rejects(copy.need(one), /cannot reach the origin/);
  copy.offline(false);
  const rejection = assert.rejects(copy.need(one), /closed/);
  copy.stop();
  await rejection;
});

test('listeners get each new status of the replica', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const script = new Script();
  const { copy, statuses } = copyOf('http://127.0.0.1:1', script);
  assert.equal(copy.status().phase, 'current');
  assert.equal(statuses.length, 0);
  const statusWith = (n: number) => new Writer().uint(1, 6).uint(6, n).uint(8, 1);
  script.status = statusWith(5);
  script.apiStatus = { queued: 4 };
  copy.begin();
  assert.deepEqual(statuses, [{ ...baseStatus, queued: 4 }]);
  copy.noteLocalChange();
  t.mock.timers.tick(100);
  assert.equal(statuses.length, 1, 'told of nothing');
  script.status = statusWith(6);
  script.apiStatus = { queued: 5 };
  copy.noteLocalChange();
  assert.equal(statuses.at(-1)?.queued, 5);
  script.effects = [new Writer().uint(1, 5), new Writer().uint(1, 5)];
  script.apiStatus = { queued: 6 };
  copy.noteLocalChange();
  copy.noteWrite();
  assert.equal(statuses.length, 2, 'told again at once');
  t.mock.timers.tick(100);
  assert.equal(statuses.length, 3);
  assert.equal(statuses.at(-1)?.queued, 6);

  script.status = new Writer().uint(1, 7).uint(6, 2);
  script.effects = [new Writer().uint(1, 6).text(11, 'revoked').bool(12, true)];
  copy.noteLocalChange();
  assert.deepEqual(script.purges, [['revoked', true]]);
  assert.equal(statuses.at(-1)?.phase, 'purged');
  assert.equal(copy.status().phase, 'purged');
});

test('the replica follows the online state of the browser', (t) => {
  const browser = Object.assign(new EventTarget(), { navigator: { onLine: false } });
  const { addEventListener, removeEventListener } = browser;
  const stubs = {
    navigator: browser.navigator,
    addEventListener: addEventListener.bind(browser),
    removeEventListener: removeEventListener.bind(browser),
  };
  const descriptors = Object.keys(stubs).map(
    (name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)] as const,
  );
  for (const [name, value] of Object.entries(stubs))
    Object.defineProperty(globalThis, name, { value, configurable: true });
  t.after(() => {
    for (const [name, descriptor] of descriptors)
      if (descriptor) Object.defineProperty(globalThis, name, descriptor);
      else Reflect.deleteProperty(globalThis, name);
  });
  const kindsOf = (script: Script) => script.events.map((e) => e.kind);
  const [remoteScript, localScript] = [new Script(), new Script()];
  const { copy } = copyOf('https://origin.example', remoteScript);
  const localCopy = copyOf('http://127.0.0.1:1', localScript).copy;
  copy.begin();
  localCopy.begin();
  assert.deepEqual(kindsOf(remoteScript), [kinds.offline, kinds.begin]);
  assert.deepEqual(kindsOf(localScript), [kinds.begin], 'this device is always there');
  browser.navigator.onLine = true;
  browser.dispatchEvent(new Event('online'));
  assert.equal(kindsOf(remoteScript).at(-1), kinds.online);
  copy.offline(true);
  browser.dispatchEvent(new Event('online'));
  assert.equal(kindsOf(remoteScript).at(-1), kinds.offline, 'a person wants it so');
  copy.stop();
  localCopy.stop();
  const { length } = remoteScript.events;
  browser.dispatchEvent(new Event('offline'));
  assert.equal(remoteScript.events.length, length);
});

test('a replica whose instance trapped reports the failure', () => {
  const script = new Script();
  const { copy } = copyOf('http://127.0.0.1:1', script);
  copy.begin();
  script.die = true;
  copy.noteLocalChange();
  assert.match(String(script.failures), /trap/);
  script.die = false;
  copy.begin();
  assert.equal(copy.status().phase, 'current');
});
