import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after, before } from 'node:test';
import { type Files, MemoryFiles, StoreError } from '../src/files.ts';
import { compile, DeadError, Guest, type GuestServices, type Modules, system } from '../src/guest.ts';
import { GuestError, type Settings } from '../src/messages.ts';
import { FolderFiles } from '../src/nodefiles.ts';
import { kernels } from './kernels.ts';
import { root } from './root.ts';

const settings: Settings = { role: 'both', store: 'files', bundles: [] };
const folder = mkdtempSync(join(tmpdir(), 'runtime-'));
let modules: Modules;

before(async () => {
  const to = join(folder, 'guest.wasm');
  const args = ['build', '-trimpath', '-ldflags', '-s -w', '-buildmode=c-shared', '-o', to, './web/runtime/test/guest'];
  execFileSync('go', args, { cwd: root, env: { ...process.env, GOOS: 'wasip1', GOARCH: 'wasm', CGO_ENABLED: '0' } });
  modules = await compile(readFileSync(to), kernels);
});

after(() => rmSync(folder, { recursive: true }));

const lines: [number, string][] = [];
const services: GuestServices = {
  ...system,
  log: (level, line) => void lines.push([level, line]),
  now: () => 1_234_567_890_123_456_789n,
  bundle: (name) =>
    name === 'a/b' ? Buffer.from('more than eight bytes') : name === 'c' ? Buffer.from('few') : undefined,
  files: new MemoryFiles(),
};

const open = (overrides: Partial<GuestServices> = {}) => Guest.open(modules, { ...services, ...overrides }, settings);

/** Calls `ask` with a word and its argument, and returns the answer as text. */
function ask(g: Guest, question: string, rest: string | Uint8Array = ''): string {
  return Buffer.from(g.call('ask', Buffer.concat([Buffer.from(`${question} `), Buffer.from(rest)]))).toString();
}

const u32 = (...values: number[]) => new Uint8Array(new Uint32Array(values).buffer);

test('the guest can call the services of its host', async () => {
  const g = await open();
  assert.equal(ask(g, 'echo', 'hello'), 'hello');
  assert.equal(ask(g, 'echo'), '');
  assert.equal(ask(g, 'now'), '1234567890123456789');
  assert.ok(Math.abs(Number(ask(g, 'time')) - Date.now()) < 5000);
  assert.equal(ask(g, 'sleep'), 'true');
  assert.equal(ask(g, 'args'), '0 0');
  assert.equal(ask(g, 'bundle', 'a/b'), '21 more than eight bytes');
  assert.equal(ask(g, 'bundle', 'c'), '3 few');
  assert.equal(ask(g, 'bundle', 'd').trim(), '-1');
  assert.equal(ask(g, 'older', 'd'), '-1');
  assert.equal(ask(g, 'lent', 'key'), '-9 9');
  lines.length = 0;
  ask(g, 'log', '8');
  ask(g, 'print', 'line');
  assert.deepEqual(lines, [
    [8, '8'],
    [4, 'one line'],
    [4, 'two'],
  ]);
  const numbers = g.call('ask', Buffer.from('random 200000'));
  assert.equal(numbers.length, 200_000);
  const seen = new Set(numbers);
  assert.equal(seen.size, 256);
});

test('the kernels are called through the table of the guest', async () => {
  const g = await open();
  assert.equal(ask(g, 'quote', 'A'), String(65 + 1));
  assert.equal(ask(g, 'base64', 'xyz'), String((3n << 32n) | 8n));
  assert.equal(ask(g, 'axpy'), '[10.5 20]');
  ask(g, 'grow', '64'); // the kernels must see the enlarged memory
  assert.equal(ask(g, 'quote', 'A'), String(65 + 1));
  assert.equal(ask(g, 'decode', 'A'), '-1');
  assert.throws(() => ask(g, 'gemv'), /imports kernel\.gemv/);
  assert.ok(g.dead);
});

test('arguments and answers may be larger than the memory', async () => {
  const g = await open();
  const large = 'x'.repeat(30 << 20);
  const before = g.memory;
  assert.equal(ask(g, 'echo', large).length, large.length);
  assert.equal(ask(g, 'grow', '100'), String(100 << 20));
  assert.equal(ask(g, 'echo', 'small'), 'small');
  assert.ok(g.memory > before + (160 << 20));
});

test('calls do not leak', async () => {
  const g = await open();
  const argument = Buffer.from(`echo ${'x'.repeat(20_000)}`);
  for (let n = 0; n < 2_000; n++) g.call('ask', argument);
  const before = g.memory;
  for (let n = 0; n < 10_000; n++) g.call('ask', argument);
  assert.equal(g.memory, before);
});

for (const [name, make] of [
  ['memory', () => new MemoryFiles()],
  ['a folder', () => new FolderFiles(join(folder, 'files'))],
] as [string, () => Files][])
  test(`the guest reads and writes files in ${name}`, async () => {
    const files = make();
    const g = await open({ files });
    assert.equal(ask(g, 'size', '2'), '0');
    assert.equal(ask(g, 'write', Buffer.concat([u32(2, 0), Buffer.from('abcdef')])), '0');
    assert.equal(ask(g, 'write', Buffer.concat([u32(2, 4), Buffer.from('XYZ')])), '0');
    assert.equal(ask(g, 'sync', '2'), '0');
    assert.equal(ask(g, 'size', '2'), '7');
    assert.equal(ask(g, 'read', u32(2, 1, 6)), '0 bcdXYZ');
    assert.match(ask(g, 'read', u32(2, 1, 7)), /^5 /, 'a read beyond the end');
    assert.equal(ask(g, 'read', u32(2, 7, 0)), '0 ');
    assert.equal(ask(g, 'truncate', u32(2, 3)), '0');
    assert.equal(ask(g, 'truncate', u32(2, 5)), '0');
    assert.equal(ask(g, 'read', u32(2, 0, 5)), '0 abc\0\0');
    assert.equal(ask(g, 'size', '3'), '0');
    for (const file of [-1, 4]) assert.equal(ask(g, 'sync', String(file)), '9', `file ${file}`);
    files.close();
  });

test('each error of a file has a code', async () => {
  const fails = (failure: unknown): Files =>
    new Proxy({} as Files, {
      get: () => () => {
        throw failure;
      },
    });
  const quota = new DOMException('no room', 'QuotaExceededError');
  const closed = new DOMException('closed', 'InvalidStateError');
  const codes: [unknown, number][] = [
    [quota, 3],
    [Object.assign(new Error(), { code: 'ENOSPC' }), 3],
    [closed, 2],
    [new StoreError(4, 'torn'), 4],
    [new Error('any'), 5],
  ];
  for (const [failure, code] of codes) {
    const g = await open({ files: fails(failure) });
    assert.equal(ask(g, 'write', u32(0, 0, 1)), String(code));
    assert.equal(ask(g, 'sync', '0'), String(code));
    assert.equal(ask(g, 'size', '0'), String(-code));
  }
});

test('an instance that trapped answers no further call', async () => {
  const ends: [string, RegExp][] = [
    ['panic', /as asked/],
    ['exit', /ended with code 3/],
    ['wild', /outside the memory/],
  ];
  for (const [question, reason] of ends) {
    const g = await open();
    assert.throws(() => ask(g, question), DeadError);
    assert.match(String(g.dead?.message), reason);
    assert.throws(() => ask(g, 'echo'), DeadError);
  }
});

test('a module that refuses its settings and an invalid module are errors', async () => {
  const refused = Guest.open(modules, services, { ...settings, app: 'refuse' });
  await assert.rejects(refused, (e) => e instanceof GuestError && e.code === 14 && e.message === 'no');
  await assert.rejects(compile(Buffer.from('no module'), kernels), WebAssembly.CompileError);
  await assert.rejects(compile(Buffer.from('\0asm'), kernels), WebAssembly.CompileError);
});
