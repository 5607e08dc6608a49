import assert from 'node:assert/strict';
import { test } from 'node:test';
import './blobs.testkit';
import { type Fetch, fileUrl, overHTTP, v2 } from './client';
import { Failure } from './console';

/** Returns the calls of a host that always gives one answer, and its last request. */
function hostOf(answer: () => Response, key?: string) {
  const last: { path?: string; init?: Parameters<Fetch>[1] } = {};
  const ask: Fetch = async (path, init) => {
    Object.assign(last, { path, init });
    return answer();
  };
  return { host: v2(ask, key), last };
}
const ok = { status: { code: 10000 } };

test('a call sends its parameters, its body, its key and its options', async () => {
  const { host, last } = hostOf(() => Response.json(ok), 'k');
  await host.GET('/inputs', { params: { query: { page: 1, show: ['sha256', 'taken'] } } });
  assert.deepEqual(
    [last.path, last.init?.method, last.init?.body],
    ['/v2/inputs?page=1&show=sha256,taken', 'GET', undefined],
  );
  await host.GET('/inputs/{input_id}', { params: { path: { input_id: 'a/b ?' } } });
  assert.equal(last.path, '/v2/inputs/a%2Fb%20%3F');
  const files = { 'http://here.invalid/a': new Blob(['a']) };
  await host.POST('/models/{model_id}/outputs', { params: { path: { model_id: 'm' } }, body: { inputs: [] }, files });
  assert.deepEqual([last.path, last.init?.body, last.init?.files], ['/v2/models/m/outputs', '{"inputs":[]}', files]);
  const headers = new Headers(last.init?.headers);
  assert.deepEqual([headers.get('Authorization'), headers.get('Content-Type')], ['Key k', 'application/json']);
  const bodySerializer = () => '{"inputs":[{"id":"a","data":{"metadata":{"n":1.0}}}]}';
  await host.PATCH('/inputs', { body: { inputs: [] }, bodySerializer });
  assert.equal(last.init?.body, bodySerializer());
});

test('the runtime gets a file next to the body, and a host over HTTP gets it as base64', async () => {
  const sent: Parameters<Fetch>[1][] = [];
  const ask: Fetch = async (_, init) => {
    sent.push(init);
    return Response.json(ok);
  };
  const file = new Blob(['\x01\x02\x03']);
  for (const host of [v2(ask), v2(overHTTP(ask))])
    await host.POST('/models/{model_id}/outputs', {
      params: { path: { model_id: 'm' } },
      body: { inputs: [{ data: { image: { url: fileUrl, crop: [0, 0, 1, 1] } } }] },
      files: { [fileUrl]: file },
    });
  assert.deepEqual(sent[0]?.files, { [fileUrl]: file });
  assert.equal(sent[0]?.body, `{"inputs":[{"data":{"image":{"url":"${fileUrl}","crop":[0,0,1,1]}}}]}`);
  assert.equal(sent[1]?.files, undefined);
  assert.equal(sent[1]?.body, '{"inputs":[{"data":{"image":{"base64":"AQID","crop":[0,0,1,1]}}}]}');
  const again = sent[0]; // an application sends the options of a call again to another host, or with another token
  await overHTTP(ask)('/', again);
  await ask('/', again);
  assert.deepEqual([sent[2]?.body, sent[3]?.files], [sent[1]?.body, { [fileUrl]: file }]);
});

test('items with errors are a failure, unless the call accepts them', async () => {
  const inputs = [{ id: 'a', status: { code: 30101 } }];
  const { host } = hostOf(() => Response.json({ status: { code: 10020 }, inputs }, { status: 400 }));
  const body = { inputs: [] };
  assert.deepEqual((await host.POST('/inputs', { body, each: true })).inputs, inputs);
  await assert.rejects(
    host.POST('/inputs', { body }),
    (failure) => failure instanceof Failure && failure.code === 30101,
  );
  const none = hostOf(() => Response.json({ status: { code: 11100 }, inputs: [] }, { status: 400 })).host;
  await assert.rejects(none.POST('/inputs', { body, each: true }), (f) => f instanceof Failure && f.code === 11100);
});

test('an answer that is not from the host is a failure', async () => {
  for (const status of [200, 404, 502]) {
    const { host } = hostOf(() => new Response('<p>Sign in to the network</p>', { status }));
    await assert.rejects(host.GET('/models'), (failure) => failure instanceof Failure && failure.status === status);
  }
});
