import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { EnvelopeError, Reader, Writer } from '../src/envelope.ts';
import * as messages from '../src/messages.ts';
import * as sync from '../src/sync.ts';
import { root } from './root.ts';

interface Sample {
  envelope: string;
  name: string;
  hex: string;
  fields: Record<string, unknown>;
}

const samples = JSON.parse(readFileSync(join(root, 'wasm/abi/testdata/envelopes.json'), 'utf8')) as Sample[];
const hex = (p: Uint8Array | undefined) => p && Buffer.from(p).toString('hex');
const unhex = (s: unknown) => (s === undefined ? undefined : new Uint8Array(Buffer.from(s as string, 'hex')));

/** Removes values that are undefined, zero or empty, because an envelope leaves them out. */
function withoutEmpty(v: unknown): unknown {
  if (Array.isArray(v)) return v.map(withoutEmpty);
  if (v === null || typeof v !== 'object') return v;
  const entries = Object.entries(v).filter(([, x]) => x && !(Array.isArray(x) && !x.length));
  return Object.fromEntries(entries.map(([k, x]) => [k, withoutEmpty(x)]));
}

const crop = (p: Uint8Array | undefined) => p && Array.from(new Float64Array(p.slice().buffer));
const job = (j: messages.Job) => ({
  url: j.url,
  data: hex(j.data),
  blob: hex(j.blob),
  crop: crop(j.crop),
  want: j.want,
  base: hex(j.base),
  keep: j.keep,
  video: hex(j.video),
});
const result = (r: messages.Result) => ({
  error: r.error,
  text: r.text,
  analysis: hex(r.analysis),
  passing: r.passing,
  blob: hex(r.blob),
  content_type: r.contentType,
  picture: hex(r.picture),
  frames: r.frames?.map(hex),
});
// biome-ignore lint/suspicious/noExplicitAny: the shapes of a file of samples
type Any = any;
const toResult = (f: Any): messages.Result =>
  ({
    error: f.error,
    text: f.text,
    analysis: unhex(f.analysis),
    passing: f.passing,
    blob: unhex(f.blob),
    contentType: f.content_type,
    picture: unhex(f.picture),
    frames: f.frames?.map(unhex),
  }) as messages.Result;
const toJob = (f: Any) =>
  ({
    crop: f.crop && new Uint8Array(new Float64Array(f.crop).buffer),
    want: f.want,
    base: unhex(f.base),
    keep: f.keep,
    video: unhex(f.video),
    planes: unhex(f.planes),
  }) as messages.Job;
const toFilm = (f: Any) =>
  ({
    output: unhex(f.output),
    video: unhex(f.video),
    failure: f.failure,
    frames: f.frames,
  }) as messages.Film;

const toReplica = (f: Any): messages.Replica => ({
  name: f.name,
  live: (['stream', 'poll', 'once'] as const)[f.live ?? 0] ?? 'stream',
  vectors: (['none', 'q16'] as const)[f.vectors ?? 0] ?? 'none',
  pictures: (['lazy', 'never', 'thumbnails', 'eager'] as const)[f.blobs ?? 0] ?? 'lazy',
  audit: f.audit,
  register: { seq: f.register_seq, data: unhex(f.register) as Uint8Array },
  origin: f.origin,
});
const pairs = (header: Any): [string, string][] => (header ?? []).map((h: Any) => [h.name, h.value ?? '']);
const toFields = (header: [string, string][]) => header.map(([name, value]) => ({ name, value }));
const eventKinds = ['status', 'begin', 'wake', 'local', 'answer', 'need', 'offline', 'online', 'stop'];
const toEvent = (f: Any): sync.Event =>
  ({
    kind: eventKinds[f.kind ?? 0],
    id: f.id,
    status: f.status,
    header: pairs(f.header),
    body: unhex(f.body),
    more: f.more,
    error: f.error,
    blob: unhex(f.blob),
  }) as sync.Event;
const nanoseconds = 1e6; // nanoseconds in a millisecond
const effectKinds = ['', 'ask', 'cancel', 'wake', 'got', 'changed', 'purge'];
const fault = (e: messages.GuestError | undefined) => e && { code: e.code, text: e.message };
const snake = (name: string) => name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`);
function effect(e: Any): unknown {
  const { kind, header, body, blob, error, at, keepOutbox, ...rest } = e;
  return {
    ...rest,
    kind: effectKinds.indexOf(kind),
    header: header && toFields(header),
    body: hex(body),
    blob: blob?.some((b: number) => b) ? hex(blob) : undefined,
    error: fault(error),
    at: at && at * nanoseconds,
    keep_outbox: keepOutbox,
  };
}
function statusFields({ phase, epoch, ...rest }: sync.SyncStatus): unknown {
  const times = ['contact', 'asOf', 'audited', 'retry', 'heard'];
  const others = Object.entries(rest).map(([k, v]) => [snake(k), times.includes(k) ? Number(v) * nanoseconds : v]);
  return { phase: sync.phases.indexOf(phase), epoch: hex(epoch), ...Object.fromEntries(others) };
}

/** The functions by envelope: `write` encodes it from the fields of a sample, and `read` decodes it. */
const sides: Record<string, { write?: (f: Any) => Uint8Array; read?: (p: Uint8Array) => unknown }> = {
  settings: {
    write: (f) =>
      messages.encodeSettings({
        role: (['engine', 'analyser', 'both'] as const)[f.role - 1] ?? 'engine',
        app: f.app,
        store: (['lent', 'files', 'memory'] as const)[f.store - 1] ?? 'lent',
        publicUrl: f.public_url,
        publicAppId: f.public_app_id,
        keepPredicted: f.keep_predicted,
        bundles: f.bundle ?? [],
        tokens: f.tokens,
        openDoor: f.open_door,
        rate: f.rate,
        burst: f.burst,
        counted: f.counted,
        maxBytes: f.max_bytes,
        maxMembers: f.max_members,
        operatorRate: f.operator_rate,
        operatorBurst: f.operator_burst,
        pictureTime: f.picture_time,
        memory: f.memory,
        checked: f.checked,
        salvage: f.salvage,
        ...(f.replica && { replica: toReplica(f.replica) }),
      }),
  },
  done: {
    read: (p) => {
      try {
        messages.checkDone(p);
        return {};
      } catch (failure) {
        const { code, message } = failure as messages.GuestError;
        return { error: { code, text: message } };
      }
    },
  },
  request: {
    write: (f) => messages.encodeRequest({ ...f, body: unhex(f.body) }),
  },
  response: { read: (p) => readServeResult(p) },
  jobs: { read: (p) => readServeResult(p) },
  job: { write: (f) => messages.encodeJob(toJob(f), unhex(f.data) as Uint8Array) },
  result: { read: (p) => result(messages.decodeResult(p)) },
  results: { write: (f) => messages.encodeResults(f.call, (f.result ?? []).map(toResult)) },
  step: {
    write: (f) =>
      messages.encodeStep(
        f.take,
        (f.done ?? []).map((d: Any) => ({ task: d.task, result: toResult(d.result ?? {}) })),
        f.idle,
      ),
  },
  stepped: {
    read: (p) => {
      const { tasks, ...rest } = messages.decodeStepResult(p);
      return { ...rest, task: tasks.map((t) => ({ task: t.task, job: job(t.job) })) };
    },
  },
  question: { write: (f) => messages.encodeQuestion(f.what, f.name, f.film && toFilm(f.film)) },
  film: {
    read: (p) => {
      const { args, planes, ...rest } = messages.decodeFilm(p);
      return { ...rest, arg: args, planes: hex(planes) };
    },
  },
  event: { write: (f) => sync.encodeEvent(toEvent(f)) },
  synced: {
    read: (p) => {
      const { error, effects, status } = sync.decodeSyncResult(p);
      return { error: fault(error), effect: effects.map(effect), status: statusFields(status) };
    },
  },
  digest: { read: (p) => sync.decodeDigest(p) },
  salvage: {
    read: (p) => Object.fromEntries(Object.entries(messages.decodeSalvage(p)).map(([k, v]) => [snake(k), v])),
  },
  reply: {
    read: (p) => {
      try {
        return { value: hex(messages.decodeReply(p)) };
      } catch (failure) {
        const { code, message } = failure as messages.GuestError;
        return { error: { code, text: message } };
      }
    },
  },
};

function readServeResult(p: Uint8Array): unknown {
  const s = messages.decodeServeResult(p);
  if ('jobs' in s) return { call: s.call, job: s.jobs.map(job) };
  const { status, contentType, headers, body } = s.answer;
  return {
    status,
    content_type: contentType,
    header: headers.map(([name, value]) => ({ name, value })),
    body: hex(body),
  };
}

test('the samples of the contract are written and read', async (t) => {
  const knownSamples = samples.filter((s) => s.envelope in sides);
  assert.ok(knownSamples.length >= 15, `${knownSamples.length} samples are known here`);
  for (const s of knownSamples)
    await t.test(`${s.envelope}: ${s.name}`, () => {
      const { write, read } = sides[s.envelope] as (typeof sides)[string];
      if (write) assert.equal(hex(write(s.fields)), s.hex);
      if (read) assert.deepEqual(withoutEmpty(read(unhex(s.hex) as Uint8Array)), withoutEmpty(s.fields));
    });
  const unknown = new Set(samples.filter((s) => !(s.envelope in sides)).map((s) => s.envelope));
  t.diagnostic(`not of this side: ${[...unknown].join(', ')}`);
});

test('numbers of all sizes are read as they were written', () => {
  for (const v of [1, 127, 128, 300, 2 ** 28 - 1, 2 ** 28, 2 ** 31, 2 ** 32, 2 ** 40 + 1, Number.MAX_SAFE_INTEGER]) {
    const r = Reader.envelope(Writer.envelope().uint(3, v).finish());
    assert.ok(r.next());
    assert.equal(r.uint(), v);
    assert.equal(r.number, 3);
    assert.ok(!r.next());
  }
  const maxNumber = new Reader(new Uint8Array([8, ...Array(9).fill(0xff), 1]));
  assert.ok(maxNumber.next());
  assert.equal(maxNumber.big(), 2n ** 64n - 1n);
  assert.throws(() => maxNumber.uint(), EnvelopeError);
  assert.throws(() => Writer.envelope().uint(1, -1), RangeError);
  assert.throws(() => Writer.envelope().uint(1, 0.5), RangeError);
});

test('large fields are written at their place', () => {
  const sequence = (n: number) => Uint8Array.from({ length: n }, (_, i) => i * 7 + n);
  const sizes = [1, 255, 4095, 4096, 4097, 70_000, 3];
  const fields = () => sizes.reduce((w, n, i) => w.raw(i + 1, sequence(n)).uint(20, n), new Writer());
  const message = Writer.envelope()
    .text(1, 'a')
    .message(2, new Writer().message(3, fields()).text(4, 'z'))
    .raw(15, sequence(9000));
  const data = message.finish();
  assert.equal(message.length, data.length);
  const outerMessage = Reader.envelope(data);
  assert.ok(outerMessage.next());
  assert.equal(outerMessage.text(), 'a');
  assert.ok(outerMessage.next());
  const middleMessage = outerMessage.message();
  assert.ok(middleMessage.next());
  const innerMessage = middleMessage.message();
  for (const [i, n] of sizes.entries()) {
    assert.ok(innerMessage.next());
    assert.equal(innerMessage.number, i + 1);
    assert.deepEqual(innerMessage.raw(), sequence(n));
    assert.ok(innerMessage.next());
    assert.equal(innerMessage.uint(), n);
  }
  assert.ok(!innerMessage.next());
  assert.ok(middleMessage.next());
  assert.equal(middleMessage.text(), 'z');
  assert.ok(!middleMessage.next());
  assert.ok(outerMessage.next());
  assert.deepEqual(outerMessage.raw(), sequence(9000));
  assert.ok(!outerMessage.next());
});

test('unknown fields are skipped', () => {
  const knownFields = Writer.envelope()
    .uint(1, 200)
    .text(2, 'text/plain')
    .raw(15, new Uint8Array([1, 2]));
  const unknownFields = [0x81, 0x06, 1, 2, 3, 4, 5, 6, 7, 8, 0x85, 0x06, 1, 2, 3, 4, 0x82, 0x06, 1, 9]; // fields 96, 96, 96: fixed64, fixed32, bytes
  const s = messages.decodeServeResult(knownFields.append(new Uint8Array(unknownFields)).finish());
  assert.ok('answer' in s);
  assert.deepEqual(s.answer.body, new Uint8Array([1, 2]));
});

test('bytes other than an envelope are refused', () => {
  const bad: [string, number[]][] = [
    ['nothing', []],
    ['another version', [2, 8, 1]],
    ['an end in a tag', [1, 0x80]],
    ['an end in a number', [1, 8, 0x80]],
    ['an end in bytes', [1, 0x12, 5, 1]],
    ['an end in eight bytes', [1, 0x11, 1]],
    ['a number of 65 bits', [1, 8, ...Array(9).fill(0xff), 2]],
    ['a number without an end', [1, 8, ...Array(11).fill(0x80)]],
    ['a group', [1, 0x0b]],
    ['field 0', [1, 0, 1]],
    ['a number that is bytes', [1, 0x0a, 1, 1]],
    ['a text that is a number', [1, 8, 200, 1, 0x10, 1]],
  ];
  for (const [name, data] of bad)
    assert.throws(() => messages.decodeServeResult(new Uint8Array(data)), EnvelopeError, name);
});

test('random bytes are read or refused', () => {
  let state = 7;
  const random = () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return state >>> 16;
  };
  for (let round = 0; round < 20_000; round++) {
    const seed = unhex(samples[random() % samples.length]?.hex) as Uint8Array;
    for (let flips = random() % 4; flips >= 0; flips--) seed[random() % seed.length] = random() & 0xff;
    const data = seed.subarray(0, random() % 3 ? seed.length : random() % seed.length);
    for (const s of Object.values(sides))
      try {
        s.read?.(data);
      } catch (failure) {
        assert.ok(failure instanceof EnvelopeError, String(failure));
      }
  }
});
