// Screen sizes and languages for journeys.
import { words } from './browser.js';

export const sizes = { telephone: [360, 740], desk: [1440, 900], wide: [2400, 1350] };

/** Changes the language and the size of the screen. The language applies to the next page that is loaded. */
export async function setScreen(s, code, [width, height]) {
  s.code = code;
  s.m = await words(code);
  await s.t.page.setViewportSize({ width, height });
  await s.t.page.evaluate((code) => localStorage.setItem('language', code), code);
}

/** In the page: collects the texts that the side bar shows after this call, in their order. */
export function collectStatusTexts() {
  const texts = [];
  const line = document.querySelector('aside .foot');
  const addText = () => {
    const text = line.querySelector('b')?.textContent;
    if (text && text !== texts.at(-1)) texts.push(text);
  };
  addText();
  new MutationObserver(addText).observe(line, { subtree: true, childList: true, characterData: true });
  return texts;
}
