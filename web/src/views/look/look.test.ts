import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import '../../api/blobs.testkit';
import { type Fetch, fileUrl, v2 } from '../../api/client';
import { Failure } from '../../api/console';
import { lately, type ProgressMark, rate, secondsLeft } from '../../host/progress';
import { Calls, customModel } from './calls';
import {
  bytesToHex,
  countMatches,
  createReceipt,
  localOrigin,
  type Receipt,
  receiptsMatch,
  shortHash,
} from './consistency';
import { fitSize, parseSamples, sampleLessons } from './pictures';

/** Returns a fetch function that gives these answers in turn, and the list of its requests. */
function answers(...all: [number, object][]): {
  ask: Fetch;
  requests: { line: string; body: unknown; key: string | null }[];
} {
  const requests: { line: string; body: unknown; key: string | null }[] = [];
  const ask: Fetch = async (path, init = {}) => {
    const key = new Headers(init.headers).get('Authorization');
    requests.push({
      line: `${init.method} ${path}`,
      body: init.body ? JSON.parse(init.body as string) : undefined,
      key,
    });
    const next = all.shift();
    assert.ok(next, `nobody expected ${init.method} ${path}`);
    return Response.json(next[1], { status: next[0] });
  };
  return { ask, requests };
}

const picture = new Blob(['x']);
const ok = { status: { code: 10000, description: 'Ok' } };
const version = (code: number) =>
  [200, { ...ok, model_version: { id: 'v', status: { code, description: 'd' } } }] as [number, object];

test('a prediction requests its language only if the model has languages', async () => {
  const concepts = [{ id: 'ai_1', name: 'Vogel', value: 0.9 }];
  const { ask, requests } = answers(
    [200, { ...ok, outputs: [{ data: { concepts } }] }],
    [200, { ...ok, outputs: [{ data: {} }] }],
  );
  assert.deepEqual(await new Calls(v2(ask, 'k')).predict('g', picture, 'de'), concepts);
  assert.deepEqual(await new Calls(v2(ask)).predict(customModel, picture), []);
  assert.deepEqual(requests, [
    {
      line: 'POST /v2/models/g/outputs',
      body: {
        inputs: [{ data: { image: { url: fileUrl } } }],
        model: { output_info: { output_config: { language: 'de' } } },
      },
      key: 'Key k',
    },
    { line: 'POST /v2/models/taught/outputs', body: { inputs: [{ data: { image: { url: fileUrl } } }] }, key: null },
  ]);
});

test('a failure has the status of the picture if the answer has one', async () => {
  const cases: [[number, object], number, number][] = [
    [[400, { status: { code: 10020 }, inputs: [{ status: { code: 30101 } }] }], 400, 30101],
    [[400, { status: { code: 10020 }, outputs: [{ status: { code: 30300 } }] }], 400, 30300],
    [[401, { status: { code: 11009 }, outputs: [] }], 401, 11009],
    [[200, { status: { code: 10010 }, outputs: [{ status: { code: 30105 } }] }], 200, 30105],
    [[502, {}], 502, 0],
  ];
  for (const [answer, status, code] of cases) {
    await assert.rejects(new Calls(v2(answers(answer).ask)).embed(picture), (failure) => {
      assert.ok(failure instanceof Failure);
      assert.deepEqual([failure.status, failure.code], [status, code]);
      return true;
    });
  }
  const unreached = new Calls(v2(() => Promise.reject(new TypeError('fetch failed'))));
  await assert.rejects(unreached.embed(picture), (failure) => failure instanceof Failure && failure.status === 0);
  const ended = new Calls(v2(() => Promise.reject(new Error('the runtime was closed'))));
  await assert.rejects(ended.embed(picture), /closed/);
});

test('a picture that is already stored only gets its concept', async () => {
  const existsAnswer: [number, object] = [400, { status: { code: 10020 }, inputs: [{ status: { code: 30100 } }] }];
  const input = (concept?: string) => ({
    id: 'p',
    data: {
      image: { url: 'https://a.example/hosted/77' },
      metadata: { name: 'Bee' },
      ...(concept && {
        concepts: [
          { id: 'other', value: 1 },
          { id: concept, value: 1 },
        ],
      }),
    },
  });
  const bee = { id: 'p', name: 'Bee', blob: picture };
  const labelled = answers(existsAnswer, [200, { ...ok, inputs: [input('taught-2')] }]);
  assert.deepEqual(await new Calls(v2(labelled.ask)).save(bee, 'taught-2'), {
    id: 'p',
    path: '/hosted/77',
    name: 'Bee',
    concept: 'taught-2',
  });
  assert.deepEqual(
    labelled.requests.map((a) => a.line),
    ['POST /v2/inputs', 'PATCH /v2/inputs'],
  );
  const plain = answers(existsAnswer, [200, { ...ok, input: input() }]);
  assert.equal((await new Calls(v2(plain.ask)).save(bee)).concept, undefined);
  assert.equal(plain.requests[1]?.line, 'GET /v2/inputs/p');
  const refused = answers([400, { status: { code: 10020 }, inputs: [{ status: { code: 30101 } }] }]);
  await assert.rejects(new Calls(v2(refused.ask)).save(bee), Failure);
});

test('all stored pictures are read, over several pages', async () => {
  const inputsOf = (n: number) =>
    Array.from({ length: n }, (_, i) => ({ id: `${n}-${i}`, data: { image: { url: '/hosted/1' } } }));
  const { ask, requests } = answers([200, { ...ok, inputs: inputsOf(200) }], [200, { ...ok, inputs: inputsOf(3) }]);
  assert.equal((await new Calls(v2(ask)).pictures()).length, 203);
  assert.deepEqual(
    requests.map((a) => a.line),
    ['GET /v2/inputs?page=1&per_page=200', 'GET /v2/inputs?page=2&per_page=200'],
  );
});

test('custom concepts are told apart from other concepts', async () => {
  const concepts = [
    { id: 'taught-2', name: 'Cup' },
    { id: 'a', name: 'a' },
    { id: 'taught-1', name: 'Pen' },
    { id: 'ai_1', name: 'bird' },
  ];
  const { ask } = answers([200, { ...ok, concepts }]);
  assert.deepEqual(await new Calls(v2(ask)).customConcepts(), [
    { id: 'taught-1', name: 'Pen' },
    { id: 'taught-2', name: 'Cup' },
  ]);
});

test('a training is awaited, and a failed one is an error', async () => {
  const newVersion: [number, object] = [200, { ...ok, model: { model_version: { id: 'v' } } }];
  const pen = { id: 'taught-1', name: 'Pen' };
  let pauses = 0;
  const pause = async () => {
    pauses++;
  };
  const first = answers([200, ok], [200, ok], newVersion, version(21103), version(21101), version(21100));
  await new Calls(v2(first.ask)).train([pen], pause);
  assert.equal(pauses, 2);

  const existsAnswer: [number, object] = [400, { status: { code: 40010 } }];
  const again = answers(
    [400, { status: { code: 40003 } }],
    [200, ok],
    existsAnswer,
    [200, ok],
    newVersion,
    version(21111),
  );
  await assert.rejects(
    new Calls(v2(again.ask)).train([pen], pause),
    (failure) => failure instanceof Failure && failure.code === 21111,
  );
  assert.deepEqual(
    again.requests.map((a) => a.line),
    [
      'POST /v2/concepts',
      'PATCH /v2/concepts',
      'POST /v2/models',
      'PATCH /v2/models',
      'POST /v2/models/taught/versions',
      'GET /v2/models/taught/versions/v',
    ],
  );
});

test('a missing model is not trained', async () => {
  assert.equal(await new Calls(v2(answers([404, { status: { code: 11101 } }]).ask)).isTrained(), false);
  const versions = (...codes: number[]) =>
    [200, { ...ok, model_versions: codes.map((code) => ({ status: { code } })) }] as [number, object];
  assert.equal(await new Calls(v2(answers(versions(21102)).ask)).isTrained(), false);
  assert.equal(await new Calls(v2(answers(versions(21102, 21100)).ask)).isTrained(), true);
  await assert.rejects(new Calls(v2(answers([500, { status: { code: 11111 } }]).ask)).isTrained(), Failure);
});

test('a receipt has the parts on which the hosts agree, in English', async () => {
  const vector = [0.1, -0.25, 1e-7];
  const concepts = (app_id: string | null) => [{ id: 'ai_1', name: 'bird', value: 0.98, app_id }];
  const place = (app_id: string | null, v = vector) =>
    answers(
      [200, { ...ok, outputs: [{ data: { embeddings: [{ vector: v, num_dimensions: 3 }] } }] }],
      [200, { ...ok, outputs: [{ data: { concepts: concepts(app_id) } }] }],
    );
  const device = place(null);
  const one = await createReceipt(new Calls(v2(device.ask)), picture);
  const other = await createReceipt(new Calls(v2(place('main').ask)), picture);
  const off = await createReceipt(new Calls(v2(place(null, [0.1, -0.25, 1.0000000000000002e-7]).ask)), picture);
  assert.deepEqual(device.requests[1]?.body, {
    inputs: [{ data: { image: { url: fileUrl } } }],
    model: { output_info: { output_config: { language: 'en' } } },
  });
  assert.ok(receiptsMatch(one, other));
  assert.equal(
    one.embedding,
    bytesToHex(await crypto.subtle.digest('SHA-256', new TextEncoder().encode('[0.1,-0.25,1e-7]'))),
  );
  assert.ok(!receiptsMatch(one, off));
  assert.equal(one.answer, off.answer);
  assert.deepEqual(countMatches([one, other, undefined]), { equal: 2, answered: 2, missing: 1 });
  assert.deepEqual(countMatches([one, off]), { equal: 1, answered: 2, missing: 0 });
  assert.deepEqual(countMatches([undefined]), { equal: 0, answered: 0, missing: 1 });
  const full: Receipt = { embedding: '9f3c41aa07deb215ffff', answer: '', ms: 0 };
  assert.equal(shortHash(full.embedding), '9f3c 41aa 07de b215');
});

test('only an address of this machine is a server', () => {
  const cases: [string, string | undefined][] = [
    ['127.0.0.1:8081', 'http://127.0.0.1:8081'],
    [' localhost:8081/v2 ', 'http://localhost:8081'],
    ['http://LOCALHOST', 'http://localhost'],
    ['localhost.example.org', undefined],
    ['https://127.0.0.1', undefined],
    ['pictures.example.org', undefined],
    ['', undefined],
    ['no host', undefined],
    ['127.0.0.1:port', undefined],
    ['127.0.0.1:99999', undefined],
    ['127.0.0.1@example.org', undefined],
  ];
  for (const [typed, want] of cases) assert.equal(localOrigin(typed), want, typed);
});

test('a frame keeps its shape and is not made larger', () => {
  assert.deepEqual(fitSize(1280, 720, 320), { width: 320, height: 180 });
  assert.deepEqual(fitSize(720, 1280, 320), { width: 180, height: 320 });
  assert.deepEqual(fitSize(100, 50, 320), { width: 100, height: 50 });
  assert.deepEqual(fitSize(5000, 1, 320), { width: 320, height: 1 });
  assert.deepEqual(fitSize(0, 0, 320), { width: 1, height: 1 });
});

test('the samples are those with credits, and every lesson is among them', () => {
  const samples = parseSamples(readFileSync('samples/credits.tsv', 'utf8'));
  assert.equal(samples.length, 42);
  for (const s of samples)
    for (const cell of Object.values(s)) assert.doesNotMatch(String(cell), /\\|^$|NaN|�/, s.file);
  assert.equal(samples.find((s) => s.file.startsWith('10-'))?.author, 'Esin Üstün');
  const files = new Set(samples.map((s) => s.file));
  for (const lesson of sampleLessons) for (const file of lesson.files) assert.ok(files.has(file), file);
  const taught = sampleLessons.flatMap((l) => l.files);
  assert.equal(new Set(taught).size, taught.length);
});

test('the remaining time follows from the progress', () => {
  const at = (ms: number, done: number) => ({ at: ms, done });
  assert.equal(secondsLeft(at(0, 0), at(1000, 25), 100), 3);
  assert.equal(secondsLeft(at(0, 0), at(400, 25), 100), undefined);
  assert.equal(secondsLeft(at(0, 50), at(1000, 50), 100), undefined);
  assert.equal(secondsLeft(at(0, 0), at(1000, 100), 100), 0);
  assert.equal(secondsLeft(at(0, 90), at(1000, 95), 100), 1); // the 90 before the first mark do not count for the speed
});

test('the remaining time follows the recent speed', () => {
  let marks: readonly ProgressMark[] = [];
  const at = (ms: number) => ({ at: ms, done: ms < 10_000 ? ms / 20_000 : 0.5 + (ms - 10_000) / 50_000 });
  for (let ms = 0; ms <= 20_000; ms += 500) marks = lately(marks, at(ms));
  const soon = secondsLeft(marks[0] as ProgressMark, at(20_000), 1) ?? 0;
  assert.ok(soon === 15 || soon === 16, `${soon} s are left`); // the mean speed since the start would give 9
  assert.ok(marks.length < 12, `${marks.length} marks are kept`);
  // There is no progress for a while, so only the earlier speed is known.
  for (let ms = 20_500; ms <= 30_000; ms += 500) marks = lately(marks, { at: ms, done: 0.7 });
  const left = secondsLeft(marks[0] as ProgressMark, { at: 30_000, done: 0.7 }, 1) ?? 0;
  assert.ok(left > 15 && left < 60, `${left} s are left`);
});

test('the rate counts the results of the last two seconds', () => {
  assert.equal(rate([], 0), 0);
  assert.equal(rate([5], 5), 0);
  assert.equal(rate([0, 100, 200, 300], 300), 10);
  assert.equal(rate([0, 5000, 5200], 5200), 5);
});
