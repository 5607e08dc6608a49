// The name and the ID of this browser, by which a list of devices shows it.
import { readChoice, saveChoice } from './storage';

// The first expression that matches names the browser or its system. Chrome's text is also in that of other browsers, Safari's in nearly all.
const browsers: readonly [RegExp, string][] = [
  [/\bEdgA?\/|\bEdgiOS\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\bFirefox\/|\bFxiOS\//, 'Firefox'],
  [/Chrome\/|\bCriOS\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
];
const systems: readonly [RegExp, string][] = [
  [/\bAndroid\b/, 'Android'],
  [/\b(iPhone|iPad|iPod)\b/, 'iOS'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
];

/** Returns the names of the browser and the system of a user agent, such as "Chrome (Linux)"; empty if both are unknown. */
export function browserName(userAgent: string): string {
  const [browser, system] = [browsers, systems].map((all) => all.find(([text]) => text.test(userAgent))?.[1]);
  return browser && system ? `${browser} (${system})` : (browser ?? system ?? '');
}

/** Returns the ID of this browser. The first call makes it. If the browser stores nothing, each page has another one. */
export function browserId(): string {
  const id = readChoice('browser') ?? crypto.randomUUID().replaceAll('-', '');
  saveChoice('browser', id);
  return id;
}
