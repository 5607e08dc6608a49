// Searches: similar pictures against a plain scan, a search by three clauses in three programs, and the same call at an edge.
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { check, checkEqual, runShell } from './browser.js';
import { pollUntil } from './demonstration.js';
import { lighthouse, sample } from './pictures.js';
import { setScreen, sizes } from './screens.js';

const embedder = 'bbb5f41425b8468d9b7a554ff10f8581'; // the model with the embeddings for similarity
const tolerance = 1e-3; // two cosines that differ by less than this are equal for the index

/** Reads the number of hits above the cut-off, which the page shows. */
const hitCount = (t) =>
  t.page
    .locator('.cutoff b')
    .first()
    .textContent()
    .then((text) => Number(text.match(/\d+/)[0]));

export async function findSimilar(s) {
  const { t } = s;
  await setScreen(s, 'ja', sizes.desk);
  const base64 = (await sample(lighthouse)).toString('base64');
  const input = { id: 'same-file', data: { image: { base64 }, metadata: { name: 'The same file' } } };
  checkEqual((await s.callApi('POST', '/inputs', { inputs: [input] })).status.code, 10000, 'a copy of a picture');
  await t.page.goto(`/${s.app}/search`);
  const found = t.page.locator('li[data-id="same-file"]');
  await t.waitFor(found); // the picture that was added elsewhere
  await found.locator('.tile').hover();
  await found.locator('.mag').click();
  s.pictures++;
  s.addedName = input.data.metadata.name;
  const range = t.page.locator('input.range');
  await t.waitFor(range);
  await t.waitUntil(
    (text) => [...document.querySelectorAll('.why')].filter((element) => element.textContent === text).length === 2,
    s.m('search_same_file'),
  );
  const initialCount = await hitCount(t);
  await range.fill('0');
  await t.waitUntil((n) => Number(document.querySelector('.cutoff b').textContent.match(/\d+/)?.[0]) > n, initialCount);
  checkEqual(await hitCount(t), s.pictures, 'hits without a cut-off');
  await t.waitUntil((n) => document.querySelectorAll('li[data-id]').length === n, s.pictures); // the list settles after the count
  const scores = (await t.page.locator('.score').allTextContents()).map(Number);
  checkEqual(scores.slice(0, 2), [1, 1], 'the scores of the same file');
  checkEqual(
    scores,
    scores.toSorted((a, b) => b - a),
    'the order of the scores',
  );
  await checkHitOrder(
    s,
    await t.page.locator('li[data-id]').evaluateAll((elements) => elements.map((element) => element.dataset.id)),
  );
  await t.checkAccessibility('pictures that are alike');
}

/** Checks the order of the hits against cosines that are computed here for every picture. */
async function checkHitOrder(s, ids) {
  const { inputs } = await s.callApi('GET', '/inputs?per_page=100');
  const pictures = inputs.map((input) => ({ data: { image: { url: input.data.image.url } } }));
  const { outputs } = await s.callApi('POST', `/models/${embedder}/outputs`, { inputs: pictures });
  const vectors = new Map(outputs.map((o, i) => [inputs[i].id, o.data.embeddings[0].vector]));
  const queryVector = vectors.get('same-file');
  const cosine = (id) => vectors.get(id).reduce((sum, v, i) => sum + v * queryVector[i], 0);
  const sortedCosines = [...vectors.keys()].map(cosine).sort((a, b) => b - a);
  const hitCosines = ids.map(cosine);
  checkEqual(hitCosines.length, sortedCosines.length, 'hits that are shown');
  const wrongCosines = hitCosines.filter((value, i) => Math.abs(value - sortedCosines[i]) > tolerance);
  checkEqual(wrongCosines, [], 'hits that are not where a scan has them');
}

/** Returns the parts of an answer that must be equal at two places: its status and hits, without the URL of the place. */
function comparableText({ status, hits }, place) {
  return JSON.stringify([status, hits?.map(({ score, input }) => [score, input])]).replaceAll(place, '');
}

export async function searchByClauses(s) {
  const { t, edge } = s;
  await setScreen(s, 'ar', sizes.wide);
  const ands = JSON.stringify([{ output: { data: { concepts: [{ name: 'outdoors' }] } } }]);
  await t.page.goto(`/${s.app}/search?q=${encodeURIComponent(ands)}`);
  await t.waitFor(t.page.locator('li[data-id]'));
  await t.waitFor(t.page.locator('.pins .pin'));
  await t.press('c'); // adds a circle in the middle of the map
  await t.waitUntil(() => decodeURIComponent(location.search).includes('withinKilometers'));
  await t.waitFor(t.page.locator('.chip').nth(1));
  // The hits of the new query have a distance. Before they come, the list still has the hits of the previous one.
  await t.waitUntil(() => {
    const reasons = [...document.querySelectorAll('li[data-id] .why')];
    return reasons.length && reasons.every((reason) => /\d/.test(reason.textContent));
  });
  const first = t.page.locator('li[data-id]').first();
  const id = await first.getAttribute('data-id');
  await first.locator('.tile').hover();
  await first.locator('.mag').click();
  await t.waitFor(t.page.locator('.chip').nth(2));
  await t.waitFor(t.page.locator('input.range'));
  await t.checkAccessibility('three clauses');
  const command = await t.copyText(t.button(s.m('copy_what', { what: s.m('search_request') })));
  checkClauses(command, id);
  const run = (text) => runShell(text, { SIGHTLINE_KEY: s.key });
  const originResult = await run(command);
  checkEqual([originResult.status, originResult.answer.status.code], [200, 10000], 'the answer to the request');
  check(originResult.answer.hits.length > 0, 'no hit');
  await pollUntil(
    async () => comparableText((await run(command.replaceAll(s.origin, edge))).answer, edge),
    (edgeText) => edgeText === comparableText(originResult.answer, s.origin),
    'the answer of the edge',
  );
  await runPrograms(s, originResult.answer);
}

/**
 * Checks that the command's body has three clauses in the form of the API: a concept, a circle and a picture. It has no minimum score,
 * since the person did not choose one.
 */
function checkClauses(command, id) {
  const { ands, ...rest } = JSON.parse(command.match(/-d '(.*)'$/s)[1]).query;
  checkEqual(rest, {}, 'what the query has besides its clauses');
  const [concept, circle, picture] = ands;
  checkEqual(concept, { output: { data: { concepts: [{ name: 'outdoors', value: true }] } } }, 'the first clause');
  const { geo_point: point, geo_limit: limit } = circle.input.data.geo;
  checkEqual(
    circle,
    {
      input: {
        data: {
          geo: {
            geo_point: { latitude: Number(point.latitude), longitude: Number(point.longitude) },
            geo_limit: { type: 'withinKilometers', value: Number(limit.value) },
          },
        },
      },
    },
    'the second clause',
  );
  checkEqual(picture, { output: { input: { id, data: { image: {} } } } }, 'the third clause');
}

/** Runs the page's other two programs for the same request, in JavaScript and Go, and compares their output. */
async function runPrograms(s, answer) {
  const { t } = s;
  const folder = await mkdtemp(join(tmpdir(), 'programs-'));
  const run = async (name, file, command, ...args) => {
    await t.button(name).click();
    const code = t.page.locator('section.request pre', {
      hasText: file === 'ask.go' ? 'package main' : 'const answer',
    });
    await writeFile(join(folder, file), await code.textContent());
    const env = { ...process.env, SIGHTLINE_KEY: s.key };
    return new Promise((resolve, reject) =>
      execFile(command, [...args, file], { cwd: folder, env, maxBuffer: 1 << 24 }, (failure, stdout, stderr) =>
        failure ? reject(new Error(`${file}: ${failure.message}\n${stderr}`)) : resolve(stdout),
      ),
    );
  };
  try {
    const lines = answer.hits.map(({ score, input }) => `${score} ${input.id}\n`).join('');
    checkEqual(await run('JS', 'ask.mjs', process.execPath), lines, 'what the JavaScript says');
    const { hits } = JSON.parse(await run('Go', 'ask.go', 'go', 'run'));
    checkEqual(hits, answer.hits, 'what the Go program says');
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Runs the example of the application's page as a pasted command, against the origin and against the edge. */
export async function runExample(s) {
  const { t, edge } = s;
  await setScreen(s, 'en', sizes.desk);
  await t.page.goto(`/apps/${s.app}`);
  const command = await t.copyText(t.button(s.m('copy_what', { what: s.m('code_of', { tool: 'cURL' }) })));
  const run = async (text) => {
    const { status, text: body, answer } = await runShell(text, { SIGHTLINE_KEY: s.key });
    checkEqual([status, answer.status.code], [200, 10000], 'the answer');
    const [output] = answer.outputs;
    // These ids, times and the picture's temporary URL differ from answer to answer.
    const variableParts = [output.id, output.created_at, output.input.id, output.input.data.image.url];
    return variableParts.reduce((result, part) => result.replaceAll(part, '-'), body);
  };
  const originText = await run(command);
  check(originText.includes('"lighthouse"'), `no lighthouse in ${originText}`);
  checkEqual(await run(command.replaceAll(s.origin, edge)), originText, 'the answer of the edge');
}
