import assert from 'node:assert/strict';
import { test } from 'node:test';
import { afterSignIn, appPath, find, withinRoutes } from './routes';

test('a URL leads to a page or to none', () => {
  const cases: [string, string | undefined, Record<string, string>?][] = [
    ['/', '/'],
    ['/look', '/look'],
    ['/apps', '/apps'],
    ['/apps/', '/apps'],
    ['/apps/7c21e0', '/apps/:app', { app: '7c21e0' }],
    ['/apps/a%2Fb', '/apps/:app', { app: 'a/b' }],
    ['/apps/%', undefined],
    ['/apps/a/b', undefined],
    ['/apps//', undefined],
    ['//apps', undefined],
    ['/sign-in', '/sign-in'],
    ['/Sign-in', undefined],
    ['/sync', '/sync'],
    ['/sync/x', undefined],
    ['/v2/models', undefined],
  ];
  for (const [path, route, params] of cases) {
    const place = find(path);
    assert.equal(place?.route, route, path);
    if (params) assert.deepEqual(place?.params, params, path);
  }
});

test('a page keeps its parameters while another page is loaded', () => {
  const [one, two] = ['1'.repeat(32), '2'.repeat(32)];
  let path = `/${one}/inputs`;
  const at = withinRoutes(() => ({ place: find(path) }), ['/:app/inputs']);
  const app = () => at().place?.params.app;
  assert.equal(app(), one);
  path = `/${two}/inputs`;
  assert.equal(app(), two);
  for (path of ['/sync', `/apps/${one}`, `/${one}/models`, '/nowhere']) assert.equal(app(), two, path);
  path = `/${one}/inputs`;
  assert.equal(app(), one);
});

test('the path of an application leads to its id, with any characters', () => {
  for (const id of ['x', 'a/b', 'ä?#', '%', '..']) {
    assert.equal(find(appPath(id))?.params.app, id);
  }
});

test('signing in leads only to pages of the server', () => {
  const cases: [string | null, string][] = [
    [null, '/'],
    ['', '/'],
    ['/apps/x#keys', '/apps/x#keys'],
    ['/account', '/account'],
    ['/sign-in', '/'],
    ['/nowhere', '/'],
    ['//example.org', '/'],
    ['/\\example.org', '/'],
    ['https://example.org', '/'],
    ['javascript:alert(1)', '/'],
  ];
  for (const [next, want] of cases) assert.equal(afterSignIn(next), want, String(next));
});
