import assert from 'node:assert/strict';
import test from 'node:test';
import { Reader, Writer } from '../src/envelope.ts';
import { type Decoder, Films } from '../src/film.ts';
import { codes, encodeFrame, failures, type Result } from '../src/messages.ts';

const module = new WebAssembly.Module(new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]));
const film = new Blob(['film']);
const job = { video: new Writer().uint(1, 1000).finish(), want: 1 };

/** A guest that distinguishes films by their first letter. For p it returns no command line, as for a picture, and it refuses t. */
function guest(time: number) {
  const failed: { failure: number; frames: number }[] = [];
  const refuse = (code: number, text: string) =>
    Writer.envelope().message(1, new Writer().uint(1, code).text(2, text)).finish();
  return {
    failed,
    call(_: unknown, question: Uint8Array) {
      let kind = '';
      let head = 0;
      const f = { failure: 0, frames: 0 };
      for (const r = Reader.envelope(question); r.next(); ) {
        if (r.number === 1) kind = r.text();
        if (r.number === 4)
          for (const m = r.message(); m.next(); ) {
            if (m.number === 1) head = m.raw()[0] ?? 0;
            if (m.number === 3) f.failure = m.uint();
            if (m.number === 4) f.frames = m.uint();
          }
      }
      if (kind === 'film.failed') {
        failed.push(f);
        return refuse(codes.tooLarge, 'too long');
      }
      if (head === 0x74) return refuse(codes.unsupported, 'no video');
      const reply = new Writer().uint(6, time);
      if (head !== 0x70) reply.text(1, 'ffprobe').uint(5, 1 << 20);
      return Writer.envelope().message(2, reply).finish();
    },
  };
}

/** Films whose decoders end when a test ends them. `runs` lists the calls of `run`. */
function films(module_: () => Promise<WebAssembly.Module | undefined> = async () => module) {
  const runs: {
    task: Parameters<Decoder['run']>[0];
    onFrame: (frame: Uint8Array<ArrayBuffer>, of: number) => void;
    resolve: (r: Result) => void;
    fail: (reason: Error) => void;
  }[] = [];
  let open = 0;
  const lines: string[] = [];
  const all = new Films({
    async make() {
      open++;
      return {
        run: (task, onFrame) => new Promise((resolve, fail) => runs.push({ task, onFrame, resolve, fail })),
        close: () => open--,
      };
    },
    module: module_,
    idle: 60_000,
    log: (line) => lines.push(line),
  });
  const waitForRun = async (n: number) => {
    while (runs.length < n) await new Promise(setImmediate);
    return runs[n - 1] as (typeof runs)[0];
  };
  return { all, waitForRun, runs, lines, open: () => open };
}

const hour = 3_600_000;
const frame = (i: number) => encodeFrame(1000 * i, new Uint8Array([i + 1]));

test('videos are decoded one after the other, and report their frames', async () => {
  const { all, waitForRun, runs, open } = films();
  const g = guest(hour);
  const progress: [number, number][] = [];
  const turn = () => all.turn(() => all.run(g, job, film, undefined, (done, of) => progress.push([done, of])));
  const both = [turn(), turn()];
  const first = await waitForRun(1);
  first.onFrame(frame(0), 2);
  first.onFrame(frame(1), 2);
  assert.equal(runs.length, 1);
  first.resolve({});
  (await waitForRun(2)).resolve({ error: codes.corrupt, text: 'damaged' });
  const [intact, damaged] = await Promise.all(both);
  assert.deepEqual(intact, { frames: [frame(0), frame(1)] });
  assert.deepEqual(damaged, { error: codes.corrupt, text: 'damaged' });
  assert.deepEqual(progress, [
    [1, 2],
    [2, 2],
  ]);
  assert.equal(open(), 1, 'one worker does both');
  all.close();
  assert.equal(open(), 0);
});

test('a picture is analysed without FFmpeg', async () => {
  const { all, waitForRun } = films(async () => assert.fail('FFmpeg is fetched'));
  const done = all.turn(() => all.run(guest(hour), job, new Blob(['picture']), undefined, () => {}));
  const { task, resolve: answer } = await waitForRun(1);
  assert.ok('job' in task);
  answer({ frames: [frame(0)] });
  assert.deepEqual(await done, { frames: [frame(0)] });
  const refused = await all.turn(() => all.run(guest(hour), job, new Blob(['text']), undefined, () => {}));
  assert.deepEqual(refused, { error: codes.unsupported, text: 'no video' });
  all.close();
});

test('a frame gives its picture, and the answer has the frame without it', async () => {
  const jpeg = new Uint8Array([0xff, 0xd8]);
  const bareFrame = (i: number) =>
    encodeFrame(
      1000 * i,
      Writer.envelope()
        .uint(1, 5)
        .raw(2, new Uint8Array([i]))
        .finish(),
    );
  const full = (i: number, field: number) =>
    encodeFrame(
      1000 * i,
      Writer.envelope()
        .uint(1, 5)
        .raw(2, new Uint8Array([i]))
        .raw(field, jpeg)
        .finish(),
    );
  const { all, waitForRun } = films();
  for (const [n, [want, field, bits]] of (
    [
      ['thumbnail', 6, 5],
      ['full', 8, 17],
    ] as const
  ).entries()) {
    const seen: unknown[] = [];
    const done = all.turn(() => all.run(guest(hour), job, film, undefined, (...at) => seen.push(at), want));
    const run = await waitForRun(n + 1);
    assert.ok('film' in run.task);
    assert.equal(run.task.film.job.want, bits);
    run.onFrame(full(0, field), 2);
    run.onFrame(full(1, field), 2);
    run.resolve({});
    assert.deepEqual(await done, { frames: [bareFrame(0), bareFrame(1)] });
    assert.deepEqual(seen, [
      [1, 2, { frame: bareFrame(0), picture: jpeg }],
      [2, 2, { frame: bareFrame(1), picture: jpeg }],
    ]);
  }
  const seen: unknown[] = [];
  const gif = all.turn(() =>
    all.run(guest(hour), job, new Blob(['picture']), undefined, (...at) => seen.push(at), 'full'),
  );
  (await waitForRun(3)).resolve({ frames: [full(0, 8)] });
  assert.deepEqual(await gif, { frames: [bareFrame(0)] });
  assert.deepEqual(seen, [[1, 1, { frame: bareFrame(0), picture: jpeg }]]);
  all.close();
});

test('without FFmpeg a video is not supported, and the error has the reason', async () => {
  const decode = (f: ReturnType<typeof films>) =>
    f.all.turn(() => f.all.run(guest(hour), job, film, undefined, () => {}));
  assert.deepEqual(await decode(films(async () => undefined)), {
    error: codes.unsupported,
    text: 'videos cannot be decoded here: the server of the runtime has no decoding module',
  });
  let fetched = 0;
  const once = films(async () => {
    if (!fetched++) throw new Error('no network');
    return module;
  });
  assert.deepEqual(await decode(once), {
    error: codes.unsupported,
    text: 'videos cannot be decoded here: the decoding module cannot be loaded',
  });
  assert.deepEqual(once.lines, ['the decoding module cannot be loaded: Error: no network']);
  const again = decode(once);
  (await once.waitForRun(1)).resolve({});
  assert.deepEqual(await again, { frames: [] });
  once.all.close();
});

test('a decoder ends after its time limit, with its caller, and after a failure', async () => {
  const { all, waitForRun, open } = films();
  const slow = guest(1);
  const late = all.turn(() => all.run(slow, job, film, undefined, () => {}));
  const run = await waitForRun(1);
  assert.deepEqual(await late, { error: codes.tooLarge, text: 'too long' });
  assert.deepEqual(slow.failed, [{ failure: failures.time, frames: 0 }]);
  assert.equal(open(), 0);
  run.resolve({});

  const stop = new AbortController();
  const aborted = all.turn(() => all.run(guest(hour), job, film, stop.signal, () => {}));
  await waitForRun(2);
  assert.equal(open(), 1);
  stop.abort();
  assert.deepEqual(await aborted, { error: codes.timeout });
  assert.equal(open(), 0);

  const failing = all.turn(() => all.run(guest(hour), job, film, undefined, () => {}));
  (await waitForRun(3)).fail(new Error('trap'));
  assert.deepEqual(await failing, { error: codes.internal });
  assert.equal(open(), 0);

  const closed = all.turn(() => all.run(guest(hour), job, film, undefined, () => {}));
  await waitForRun(4);
  all.close();
  assert.deepEqual(await closed, { error: codes.timeout });
  assert.equal(open(), 0);
});

test('at most eight videos wait', async () => {
  const { all } = films();
  let end = () => {};
  const first = all.turn(
    () =>
      new Promise((done) => {
        end = () => done({});
      }),
  );
  const others = Array.from({ length: 9 }, (_, i) => all.turn(async () => ({ passing: i % 2 === 0 })));
  assert.deepEqual(await others[8], { error: codes.busy });
  end();
  assert.deepEqual(await first, {});
  assert.deepEqual(
    await Promise.all(others.slice(0, 8)),
    Array.from({ length: 8 }, (_, i) => ({ passing: i % 2 === 0 })),
  );
  all.close();
});
