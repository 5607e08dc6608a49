import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { pretty, program, tools } from './request';

const body = {
  query: {
    ands: [
      { output: { data: { concepts: [{ name: "it's `this`", value: true }] } } },
      {
        input: {
          data: {
            geo: {
              geo_point: { latitude: 46.67, longitude: 11.16 },
              geo_limit: { type: 'withinKilometers', value: 220 },
            },
          },
        },
      },
      { output: { input: { id: 'a"b', data: { image: {} } } } },
    ],
  },
  pagination: { page: 1, per_page: 60 },
};

test('the formatted body is the same JSON', () => {
  assert.deepEqual(JSON.parse(pretty(body)), body);
  assert.ok(pretty(body).split('\n').length > 3);
  assert.ok(
    pretty(body)
      .split('\n')
      .every((line) => line.length < 100),
  );
});

test('no program contains a key', () => {
  for (const tool of tools)
    assert.match(program(tool, { origin: 'http://here', path: '/v2/searches', body }), /SIGHTLINE_KEY/);
});

test('a shell and JavaScript send exactly the body', async () => {
  const sent: { key: string | undefined; body: unknown }[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk) => {
      text += chunk;
    });
    request.on('end', () => {
      sent.push({ key: request.headers.authorization, body: JSON.parse(text) });
      response.end('{"hits":[]}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  process.env.SIGHTLINE_KEY = 'key';
  // The arguments that a shell passes to curl.
  const words = program('curl', { origin, path: '/v2/searches', body }).replace(/^curl/, `printf '%s\\0'`);
  const args = execFileSync('sh', ['-c', words], { encoding: 'utf8' }).split('\0');
  assert.deepEqual(JSON.parse(args[args.indexOf('-d') + 1] as string), body);
  assert.ok(args.includes('Authorization: Key key'));
  const run = new Function(
    `return (async () => { ${program('javascript', { origin, path: '/v2/searches', body })} })()`,
  );
  await run();
  assert.deepEqual(sent, [{ key: 'Key key', body }]);
  server.close();
});
