// The browser of the journeys, and the checks of every page: axe finds nothing in light or dark colours, no request goes to another host,
// and the console has no unexpected message.
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const throttle = Number(process.env.THROTTLE ?? 1); // how many times slower the pages' scripts run

export let origin = process.env.ORIGIN ?? '';

/** Sets the URL of the origin, in a journey that starts its own. */
export function setOrigin(address) {
  origin = address;
}

const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The rules of axe for a page that was already checked in other colours. */
export const contrast = { runOnly: ['color-contrast', 'link-in-text-block'] };

/** Whether waiting times are checked against a limit. Other work on the machine changes them, so only timed runs check them. */
export const isTimed = Boolean(process.env.TIMED);

/** The maximum time in ms that a journey waits for anything. After it, the journey fails. */
export const timeoutMillis = 120_000;

/** Fails with `message` unless `condition` is true. */
export function check(condition, message) {
  if (!condition) throw new Error(message);
}

/** Fails if two values do not have the same JSON. */
export function checkEqual(got, want, label) {
  check(JSON.stringify(got) === JSON.stringify(want), `${label}: ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
}

/** Loads the pages' messages in a language. Returns a function that returns the text of a message for its name and inputs. */
export async function words(language) {
  const folder = new URL('../messages/', import.meta.url);
  const files = (await readdir(folder, { recursive: true })).filter(
    (f) => basename(f) === `${language}.json` && dirname(f) !== 'terms',
  );
  const messages = Object.assign(
    {},
    ...(await Promise.all(files.map((f) => readFile(new URL(f, folder), 'utf8').then(JSON.parse)))),
  );
  return (name, inputs = {}) => {
    const text = typeof messages[name] === 'string' ? messages[name] : messages[name]?.[0].match['form=other'];
    check(text !== undefined, `no message ${name} in ${language}`);
    return text.replace(/\{(\w+)\}/g, (_, input) => {
      check(input in inputs, `message ${name} needs ${input}`);
      return inputs[input];
    });
  };
}

const serverLines = [];
let onLine = () => {};
createInterface({ input: process.stdin }).on('line', (line) => {
  serverLines.push(line);
  onLine();
});

/** Waits for a line of the server's output, past or future, that matches the pattern. Returns the first group of the match. */
export async function waitForLine(pattern) {
  for (let n = 0; ; ) {
    for (; n < serverLines.length; n++) {
      const found = serverLines[n].match(pattern);
      if (found) return found[1];
    }
    await new Promise((resolve) => {
      onLine = resolve;
    });
  }
}

/**
 * Runs a text in bash, as if a person pasted it there. Every curl in it also prints its HTTP status. Returns the last status and the
 * output.
 */
export async function runShell(text, variables = {}) {
  const home = await mkdtemp(join(tmpdir(), 'journey-'));
  try {
    await writeFile(join(home, '.curlrc'), 'write-out = "%{stderr}%{http_code}\\n"\nmax-time = 60\n');
    const env = { PATH: process.env.PATH, HOME: home, CURL_HOME: home, ...variables };
    const { stdout, stderr } = await new Promise((resolve, reject) =>
      execFile('bash', ['-c', text], { env, maxBuffer: 1 << 24 }, (failure, stdout, stderr) =>
        failure ? reject(new Error(`bash: ${failure.message}\n${stderr}`)) : resolve({ stdout, stderr }),
      ),
    );
    return { status: Number(stderr.trim().split('\n').at(-1)), text: stdout, answer: JSON.parse(stdout) };
  } finally {
    await rm(home, { recursive: true });
  }
}

export const browserArgs = [
  '--no-sandbox', // tests run as root in containers
  '--disable-background-networking',
  '--disable-breakpad',
  '--disable-component-update',
  '--disable-default-apps',
  '--disable-dev-shm-usage',
  '--disable-domain-reliability',
  '--disable-extensions',
  '--disable-gpu',
  '--disable-sync',
  '--metrics-recording-only',
  '--no-default-browser-check',
  '--no-first-run',
  '--no-pings',
  '--use-fake-device-for-media-stream', // a camera that shows a clock, or the pictures of a file
  ...(process.env.CAMERA ? [`--use-file-for-fake-video-capture=${process.env.CAMERA}`] : []),
];

/**
 * Starts the browser with the default arguments and `args`, runs a journey and ends the process. `scenario` gets the function that creates a
 * [Traveller].
 */
export async function journey(scenario, args = []) {
  const faults = []; // forbidden events, in any page
  // The browser sends all requests except those to loopback to this proxy, which refuses them. A request to the browser's maker is not a
  // fault here, because the browser itself makes such requests. If a page makes one, the context's 'request' event reports it.
  const checkHost = (url) => {
    const { hostname } = new URL(url);
    if (!/(^|\.)(google|googleapis|gstatic|gvt1)\.com$/.test(hostname)) faults.push(`a request to ${hostname}`);
  };
  const proxy = createServer((request, response) => {
    checkHost(request.url);
    response.writeHead(502, { 'Content-Type': 'text/plain' }).end('No other host is reached from here.');
  });
  proxy.on('connect', (request, socket) => {
    checkHost(`https://${request.url}`);
    socket.on('error', () => {});
    socket.end('HTTP/1.1 502 Refused\r\n\r\n');
  });
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: [...browserArgs, ...args, `--proxy-server=http://127.0.0.1:${proxy.address().port}`],
  });
  try {
    await scenario((options) => Traveller.start(browser, faults, options));
    checkEqual(faults, [], 'faults');
  } catch (failure) {
    console.log(`${activeTraveller?.currentStep ?? 'before the first step'}: ${failure?.stack ?? failure}`);
    for (const fault of faults) console.log(`  ${fault}`);
    for (const request of activeTraveller?.openRequests ?? []) console.log(`  no answer yet: ${request.url()}`);
    if (activeTraveller && process.env.SHOTS) {
      await mkdir(process.env.SHOTS, { recursive: true });
      const path = join(process.env.SHOTS, `${process.argv[1]?.split('/').at(-1)}.png`);
      await activeTraveller.page.screenshot({ path }).then(
        () => console.log(`  the page as it was: ${path}`),
        (screenshotError) => console.log(`  no picture of the page: ${screenshotError.message}`),
      );
    }
    process.exitCode = 1;
  }
  await browser.close();
  process.exit();
}

let activeTraveller; // the traveller whose step is being taken

/** Waits for a step. Scripts in a page have no time limit, so a step that does not end fails with the state of the page. */
async function awaitStep(step, page) {
  let timer;
  const timeout = new Promise((_, reject) => {
    timer = setTimeout(async () => {
      const evaluateInTime = (work) =>
        Promise.race([page.evaluate(work), new Promise((resolve) => setTimeout(resolve, 5000, 'no answer'))]).catch(
          String,
        );
      const animations = await evaluateInTime(() =>
        document.getAnimations().map((a) => `${a.playState} ${a.effect?.target?.outerHTML.slice(0, 80)}`),
      );
      const frame = await evaluateInTime(() => new Promise(requestAnimationFrame));
      reject(new Error(`the step does not end; next frame: ${frame}; animations: ${JSON.stringify(animations)}`));
    }, 5 * timeoutMillis);
  });
  try {
    return await Promise.race([step, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

/** Closes all pages before their servers end, because open pages would keep asking the servers. */
export async function closePages() {
  for (const context of activeTraveller.context.browser().contexts()) await context.close();
}

/** One person with a separate browser: its cookies, its memory and one page. */
export class Traveller {
  currentStep = 'arriving';
  isOffline = false; // true while a test deliberately has no network
  #faults;
  #expectedStatuses = []; // HTTP statuses that the console may report as errors

  static async start(
    browser,
    faults,
    { language = 'en-GB', storage = {}, camera = false, touch = false, otherOrigins = [] } = {},
  ) {
    const t = new Traveller();
    activeTraveller = t;
    t.#faults = faults;
    t.context = await browser.newContext({
      baseURL: origin,
      locale: language,
      viewport: { width: 1200, height: 800 },
      ...(touch && { hasTouch: true, isMobile: true }),
      reducedMotion: 'reduce',
      permissions: ['clipboard-read', 'clipboard-write', ...(camera ? ['camera'] : [])],
    });
    t.context.setDefaultTimeout(timeoutMillis);
    t.context.on('request', (request) => {
      const url = new URL(request.url());
      if (!['data:', 'blob:'].includes(url.protocol) && ![origin, ...otherOrigins].includes(url.origin))
        faults.push(`a request to ${url.href}`);
    });
    await t.context.addInitScript((entries) => {
      for (const [name, value] of Object.entries(entries)) localStorage.setItem(name, value);
      addEventListener('securitypolicyviolation', (e) =>
        console.error(`the policy refuses ${e.violatedDirective} ${e.blockedURI}`),
      );
    }, storage);
    await t.#openTab();
    return t;
  }

  async #openTab() {
    this.page = await this.context.newPage();
    if (throttle > 1) {
      const session = await this.context.newCDPSession(this.page);
      await session.send('Emulation.setCPUThrottlingRate', { rate: throttle });
    }
    const open = new Set();
    this.openRequests = open;
    this.page.on('request', (request) => open.add(request));
    for (const end of ['requestfinished', 'requestfailed']) this.page.on(end, (request) => open.delete(request));
    this.page.on('console', (message) => this.#onConsole(message));
    this.page.on('pageerror', (failure) => this.#faults.push(`${this.currentStep}: ${failure.stack ?? failure}`));
    this.page.on('dialog', (dialog) => {
      this.#faults.push(`${this.currentStep}: a window says ${dialog.message()}`);
      void dialog.dismiss();
    });
  }

  /** Closes the tab and opens another one. */
  async reopenTab() {
    await this.page.close();
    await this.#openTab();
  }

  #onConsole(message) {
    if (!['error', 'warning'].includes(message.type())) return;
    if (
      this.isOffline &&
      /^Failed to load resource: net::ERR_(INTERNET_DISCONNECTED|FAILED|CONNECTION_\w+|EMPTY_RESPONSE|INCOMPLETE_CHUNKED_ENCODING)$/.test(
        message.text(),
      )
    )
      return;
    if (/^\[\.WebGL-\w+\]GL Driver Message/.test(message.text())) return; // a machine without a graphics card reports this when it draws maps
    const status = message.text().match(/^Failed to load resource: .* a status of (\d+)/)?.[1];
    const index = this.#expectedStatuses.indexOf(Number(status));
    if (index >= 0) this.#expectedStatuses.splice(index, 1);
    else this.#faults.push(`${this.currentStep}: the console says ${message.text()} (${message.location().url})`);
  }

  /** Takes a step. `refusals` lists the HTTP statuses with which the server must refuse calls during the step, once each. */
  async step(name, action, refusals = []) {
    this.currentStep = name;
    activeTraveller = this;
    const startTime = performance.now();
    this.#expectedStatuses = [...refusals];
    await awaitStep(action(), this.page);
    checkEqual(this.#expectedStatuses, [], 'refusals that did not come');
    checkEqual(this.#faults, [], 'faults');
    console.log(`ok ${name} (${((performance.now() - startTime) / 1000).toFixed(1)} s)`);
  }

  /** Disconnects the network or connects it again. */
  async setOffline(offline) {
    if (offline) this.isOffline = true;
    await this.context.setOffline(offline);
    if (!offline) await this.confirmOnline();
  }

  /**
   * Notes that the network is connected again, after the server has answered a call. On a busy machine calls may still fail for a moment.
   * The console reports these failures before the answer comes.
   */
  async confirmOnline() {
    await this.waitUntil(() =>
      fetch('/healthz').then(
        () => true,
        () => false,
      ),
    );
    this.isOffline = false;
  }

  /** Returns the faults until now, and forgets them. */
  takeFaults = () => this.#faults.splice(0);

  button = (name, container = this.page) => container.getByRole('button', { name, exact: true });
  link = (name, container = this.page) => container.getByRole('link', { name, exact: true });
  field = (label, container = this.page) => container.getByLabel(label, { exact: true });
  heading = (name) => this.page.getByRole('heading', { name, exact: true });
  /** The open dialog with this name, or the open alert dialog, which asks for a decision. */
  dialog = (name) =>
    this.page.getByRole('dialog', { name, exact: true }).or(this.page.getByRole('alertdialog', { name, exact: true }));

  /** Waits until an element is visible. */
  waitFor = (locator) => locator.first().waitFor();
  /** Waits until an element is no longer in the page. */
  waitForRemoval = (locator) => locator.waitFor({ state: 'detached' });

  /** Waits until `predicate` returns true in the page. If it never does, the failure shows the function. */
  async waitUntil(predicate, argument) {
    try {
      await this.page.waitForFunction(predicate, argument);
    } catch (failure) {
      throw new Error(`${failure.message}\nwaiting for ${predicate}, given ${JSON.stringify(argument)}`, {
        cause: failure,
      });
    }
  }

  /** Presses a copy button and returns the text that it put into the clipboard. */
  async copyText(button) {
    await this.page.evaluate(() => navigator.clipboard.writeText(''));
    await button.click();
    await this.waitUntil(async () => (await navigator.clipboard.readText()) !== '');
    return this.page.evaluate(() => navigator.clipboard.readText());
  }

  /**
   * Checks the current page, or a part of it, with axe. The dark page differs only in its colours, so only the rules about colours run
   * again.
   */
  async checkAccessibility(label, part = 'html') {
    for (const [colorScheme, options] of [['light'], ['dark', contrast]]) {
      await this.page.emulateMedia({ colorScheme });
      checkEqual(await this.findViolations(part, options), [], `axe, ${label}, ${colorScheme}`);
    }
    await this.page.emulateMedia({ colorScheme: 'light' });
  }

  /** Returns the violations that axe finds in the current page, or in a part of it. */
  async findViolations(part = 'html', options = {}) {
    if (!(await this.page.evaluate(() => 'axe' in globalThis))) await this.page.evaluate(axe);
    return this.page.evaluate(
      async ([part, options]) => {
        const awaitAnimations = () => Promise.all(document.getAnimations().map((a) => a.finished.catch(() => {})));
        await new Promise(requestAnimationFrame);
        await awaitAnimations();
        const runOptions = { preload: false, resultTypes: ['violations'], ...options };
        const { violations } = await globalThis.axe.run(part, runOptions);
        return violations.map(
          (v) => `${v.id}: ${v.nodes.map((n) => `${n.html} ${n.any.map((a) => a.message)}`).join('; ')}`,
        );
      },
      [part, options],
    );
  }

  /** Checks that the page is not wider than the window, so that it does not scroll sideways. */
  async checkWidth(label) {
    const widths = await this.page.evaluate(() => {
      const { scrollWidth, clientWidth } = document.documentElement;
      return { scrollWidth, clientWidth };
    });
    check(
      widths.scrollWidth <= widths.clientWidth,
      `${label}: ${widths.scrollWidth} px wide, of ${widths.clientWidth}`,
    );
  }

  /** Returns the label or the text of the element that has the focus. */
  focusLabel = () =>
    this.page.evaluate(() => {
      const e = document.activeElement;
      const label = e?.labels?.[0]?.querySelector('b, span')?.textContent ?? e?.labels?.[0]?.textContent;
      return (e?.getAttribute('aria-label') ?? label ?? e?.textContent ?? '').trim();
    });

  press = (key) => this.page.keyboard.press(key);
  type = (text) => this.page.keyboard.type(text);
}
