// Measures the work and the frames of a page during an action, by the browser's own trace.
import { readFile } from 'node:fs/promises';

const categories = [
  'toplevel',
  'disabled-by-default-devtools.timeline',
  'disabled-by-default-devtools.timeline.frame',
  'disabled-by-default-v8.gc',
];

/** Starts a trace of a traveller's page. */
export async function startTrace(t) {
  const page = await t.context.newCDPSession(t.page);
  const browser = await t.context.browser().newBrowserCDPSession();
  const events = [];
  const collectEvents = ({ value }) => events.push(...value);
  browser.on('Tracing.dataCollected', collectEvents);
  await browser.send('Tracing.start', {
    transferMode: 'ReportEvents',
    traceConfig: { includedCategories: categories, excludedCategories: ['*'] },
  });
  return {
    /** Scrolls down this number of pixels, at this number of pixels per second, as a mouse wheel does. */
    scroll: (pixels, speed) =>
      page.send('Input.synthesizeScrollGesture', {
        x: 300,
        y: 350,
        yDistance: -pixels,
        speed,
        preventFling: true,
        gestureSourceType: 'mouse',
      }),
    /** Ends the trace and returns its figures. */
    async end() {
      const complete = new Promise((resolve) => browser.once('Tracing.tracingComplete', resolve));
      await browser.send('Tracing.end');
      await complete;
      browser.off('Tracing.dataCollected', collectEvents);
      await browser.detach();
      await page.detach();
      return readFigures(events);
    },
  };
}

/**
 * The figures of the process that drew most frames. `tasks` are the processor times of the tasks of its main thread, in ms. `drawn` is the
 * number of frames that were presented. `dropped` is the number of frames that were not, although a person could have seen movement. `late`
 * is the number of presented frames that lacked a part of the window, because the main thread was not ready.
 */
function readFigures(events) {
  const reports = events.filter((e) => e.name === 'PipelineReporter' && e.ph === 'b');
  const pid = mostFrequent(reports.map((e) => e.pid));
  const processEvents = events.filter((e) => e.pid === pid);
  const main = processEvents.find((e) => e.name === 'thread_name' && e.args.name === 'CrRendererMain')?.tid;
  const tasks = processEvents
    .filter((e) => e.tid === main && e.name === 'RunTask' && e.tdur !== undefined)
    .map((e) => e.tdur / 1000);
  const frames = reports.filter((e) => e.pid === pid).map((e) => e.args.frame_reporter);
  const presented = frames.filter(({ state }) => /^STATE_PRESENTED/.test(state));
  const dropped = frames.filter(
    ({ state, affects_smoothness: affectsSmoothness }) => state === 'STATE_DROPPED' && affectsSmoothness,
  ).length;
  return {
    pid,
    tasks,
    drawn: presented.length,
    dropped,
    late: presented.filter((frame) => frame.has_missing_content).length,
    events: processEvents.filter((e) => e.tid === main),
  };
}

function mostFrequent(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0];
}

/**
 * The memory of a process in MB. `own` is the memory that it has allocated itself, as the browser's task manager counts it: without program
 * files and shared memory, such as decoded pictures in a cache. Without /proc, both are 0.
 */
export async function memory(pid) {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '');
  const sizeOf = (name) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1] ?? 0) / 1024;
  return { resident: sizeOf('Pss'), own: sizeOf('Pss_Anon') };
}
