import assert from 'node:assert/strict';
import { test } from 'node:test';
import { browserName } from './browser';

test('a browser is named by itself and its system', () => {
  const mozilla = 'Mozilla/5.0';
  const webKit = 'AppleWebKit/537.36 (KHTML, like Gecko)';
  for (const [agent, name] of [
    [`${mozilla} (X11; Linux x86_64) ${webKit} Chrome/140.0.0.0 Safari/537.36`, 'Chrome (Linux)'],
    [`${mozilla} (X11; Linux x86_64) ${webKit} HeadlessChrome/140.0.0.0 Safari/537.36`, 'Chrome (Linux)'],
    [
      `${mozilla} (Windows NT 10.0; Win64; x64) ${webKit} Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0`,
      'Edge (Windows)',
    ],
    [`${mozilla} (Linux; Android 15; Pixel 9) ${webKit} Chrome/140.0.0.0 Mobile Safari/537.36`, 'Chrome (Android)'],
    [
      `${mozilla} (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605.1.15`,
      'Safari (macOS)',
    ],
    [
      `${mozilla} (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1`,
      'Safari (iOS)',
    ],
    [`${mozilla} (X11; Ubuntu; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0`, 'Firefox (Linux)'],
    [`${mozilla} (X11; CrOS x86_64 14541.0.0) ${webKit} Chrome/140.0.0.0 Safari/537.36`, 'Chrome (ChromeOS)'],
    ['curl/8', ''],
  ])
    assert.equal(browserName(agent ?? ''), name, agent);
});
