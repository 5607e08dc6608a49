import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Call, predictExample, type Tool, tools } from './predict';

const key = '0123456789abcdef0123456789abcdef';
const picture = Buffer.from(Array.from({ length: 40_000 }, (_, i) => (i * 131) & 255)); // all byte values, longer than a line of base64
const folder = mkdtempSync(join(tmpdir(), 'examples-'));
let calls: { path: string; authorization: string | undefined; body: string }[] = [];

const read = async (request: IncomingMessage): Promise<string> => {
  let text = '';
  for await (const part of request) text += part;
  return text;
};
const server = createServer(async (request, answer) => {
  const body = await read(request);
  if (request.url?.startsWith('/samples/')) {
    answer.end(picture);
    return;
  }
  calls.push({ path: request.url ?? '', authorization: request.headers.authorization, body });
  const concepts = [{ id: 'ai_1', name: 'lighthouse', value: 0.98 }];
  const result =
    request.url === '/v2/token' ? { access_token: 'a.b-c_d', expires_in: 900 } : { outputs: [{ data: { concepts } }] };
  answer.setHeader('Content-Type', 'application/json');
  answer.end(JSON.stringify({ status: { code: 10000 }, ...result }));
});
before(() => new Promise<void>((done) => server.listen(0, '127.0.0.1', done)));
after(() => {
  server.close();
  rmSync(folder, { recursive: true });
});

const programs: Record<Tool, { needs: string; run: (code: string) => [string, string[]] }> = {
  curl: { needs: 'curl', run: (code) => ['bash', ['-euo', 'pipefail', '-c', code]] },
  javascript: { needs: 'node', run: (code) => [process.execPath, [file('example.mjs', code)]] },
  python: { needs: 'python3', run: (code) => ['python3', [file('example.py', code)]] },
  go: { needs: 'go', run: (code) => ['go', ['run', file('example.go', code)]] },
};

function file(name: string, code: string): string {
  writeFileSync(join(folder, name), code);
  return join(folder, name);
}

function run(command: string, args: string[]): Promise<{ status: number | null; out: string }> {
  const env = {
    ...process.env,
    SIGHTLINE_KEY: key,
    SIGHTLINE_CLIENT_ID: 'id',
    SIGHTLINE_CLIENT_SECRET: 's3',
    CGO_ENABLED: '0',
  };
  return new Promise((done) => {
    const child = spawn(command, args, { env });
    let out = '';
    child.stdout.on('data', (part) => (out += part));
    child.stderr.on('data', (part) => (out += part));
    child.on('close', (status) => done({ status, out }));
  });
}

for (const tool of tools) {
  for (const by of ['key', 'token'] as const) {
    test(`${tool} by ${by} runs as it was copied`, async (t) => {
      const { needs, run: program } = programs[tool];
      if (spawnSync(needs, [needs === 'go' ? 'version' : '--version']).error) return t.skip(`${needs} is not here`);
      calls = [];
      const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const call: Call = { origin, model: 'food-items-v1.0', language: 'en', by };
      const { status, out } = await run(...program(predictExample(tool, call)));
      assert.equal(status, 0, out);
      assert.match(out, /lighthouse/);
      const last = calls.at(-1);
      assert.equal(last?.path, '/v2/models/food-items-v1.0/outputs');
      assert.equal(last?.authorization, by === 'key' ? `Key ${key}` : 'Bearer a.b-c_d');
      const sent = JSON.parse(last?.body ?? '');
      assert.deepEqual(Buffer.from(sent.inputs[0].data.image.base64, 'base64'), picture);
      assert.equal(sent.model.output_info.output_config.language, 'en');
      if (by === 'token') assert.equal(calls[0]?.authorization, `Basic ${Buffer.from('id:s3').toString('base64')}`);
    });
  }
}

test('only the example that is shown with a new key has a secret', () => {
  const call = { origin: 'https://here.test', model: 'general-v1.3', language: '' };
  for (const tool of tools) {
    for (const by of ['key', 'token'] as const)
      assert.doesNotMatch(predictExample(tool, { ...call, by }), /[0-9a-f]{32}/);
  }
  const once = predictExample('curl', { ...call, by: 'key', key });
  assert.ok(once.includes(`Key ${key}`));
  assert.doesNotMatch(once, /output_config/);
});
