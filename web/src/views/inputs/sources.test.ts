import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { strToU8, zipSync } from 'fflate';
import { Failure } from '../../console';
import { type FoundFile, type Source, samples, sources } from './sources';

const file = (path: string, text: string | Uint8Array<ArrayBuffer>, type = ''): FoundFile => ({
  path,
  file: new File([text], path.replace(/^.*\//, ''), { type }),
});
const all = async (...found: FoundFile[]) => {
  const result: Source[] = [];
  for await (const source of sources(found)) result.push(source);
  return result;
};
const plain = ({ blob, ...rest }: Source) => ({ ...rest, ...(blob && { bytes: blob.size }) });

test('pictures are taken, what is no picture is told, what systems leave is passed over', async () => {
  const result = await all(
    file('a/1.jpg', 'xx'),
    file('a/.DS_Store', 'x'),
    file('a/notes.pdf', 'x'),
    file('2', 'x', 'image/png'),
  );
  assert.deepEqual(result.map(plain), [
    { name: 'a/1.jpg', bytes: 2 },
    { name: 'a/notes.pdf', problem: '' },
    { name: '2', bytes: 1 },
  ]);
});

test('lines are inputs as the interface takes them, or flat', async () => {
  const lines = [
    '{"id":"a","url":"https://x/a.jpg"}',
    '{"data":{"image":{"url":"https://x/b.jpg","crop":[0,0,1,0.5]},"concepts":[{"id":"dog","value":false},"cat"],"metadata":{"n":7}}}',
    '',
    '{"path":"c.jpg","geo":{"longitude":11.6,"latitude":48.1}}',
    '{"path":"missing.jpg"}',
    'no json',
  ].join('\n');
  const result = await all(file('in/inputs.jsonl', lines), file('in/c.jpg', 'xyz'), file('in/other.jpg', 'x'));
  assert.deepEqual(result.slice(0, 3).map(plain), [
    { name: 'https://x/a.jpg', id: 'a', url: 'https://x/a.jpg' },
    {
      name: 'https://x/b.jpg',
      url: 'https://x/b.jpg',
      crop: [0, 0, 1, 0.5],
      concepts: [
        { id: 'dog', value: 0 },
        { id: 'cat', value: 1 },
      ],
      metadata: { n: 7 },
    },
    { name: 'c.jpg', bytes: 3, geo: { geo_point: { longitude: 11.6, latitude: 48.1 } } },
  ]);
  assert.equal(result.length, 5); // a picture that the list does not name is left out
  assert.ok(result[3]?.problem && result[4]?.problem);
});

test('rows of a table are inputs, with columns as the import of the command line has them', async () => {
  const rows =
    'id,url,concepts,not_concepts,lat,lon,metadata.shelf.row\na,https://x/a.jpg,cat; dog,bird,48.1,11.6,7\nb,https://x/b.jpg,,,,,north\n';
  const result = await all(file('list.csv', rows));
  assert.deepEqual(result, [
    {
      name: 'https://x/a.jpg',
      id: 'a',
      url: 'https://x/a.jpg',
      concepts: [
        { id: 'cat', value: 1 },
        { id: 'dog', value: 1 },
        { id: 'bird', value: 0 },
      ],
      metadata: { shelf: { row: 7 } },
      geo: { geo_point: { latitude: 48.1, longitude: 11.6 } },
    },
    { name: 'https://x/b.jpg', id: 'b', url: 'https://x/b.jpg', metadata: { shelf: { row: 'north' } } },
  ]);
});

test('spreadsheets write semicolons, tabs, decimal commas, byte order marks and UTF-16', async () => {
  const cells = ['id', 'url', 'concepts', 'lat', 'lon', 'metadata.note'];
  const values = ['a', 'https://x/a.jpg', '"cat;dog"', '47,5', '-12.25', '"Größe, 1,5"'];
  const table = (separator: string) => `${cells.join(separator)}\r\n${values.join(separator)}\r\n`;
  const utf16 = (text: string, littleEndian: boolean) => {
    const view = new DataView(new ArrayBuffer(2 * text.length + 2));
    for (const [i, unit] of [...`\ufeff${text}`].entries()) view.setUint16(2 * i, unit.charCodeAt(0), littleEndian);
    return new Uint8Array(view.buffer);
  };
  const lists = [
    file('semicolons.csv', table(';')),
    file('mark.csv', `\ufeff${table(';')}`),
    file('tabs.tsv', table('\t')),
    file('commas.csv', table(',').replace('47,5', '47.5')),
    file('little.csv', utf16(table(';'), true)),
    file('big.csv', utf16(table('\t'), false)),
    file(
      'mark.jsonl',
      '\ufeff{"id":"a","url":"https://x/a.jpg","concepts":["cat","dog"],"geo":{"latitude":47.5,"longitude":-12.25},"metadata":{"note":"Größe, 1,5"}}',
    ),
  ];
  for (const list of lists)
    assert.deepEqual(
      await all(list),
      [
        {
          name: 'https://x/a.jpg',
          id: 'a',
          url: 'https://x/a.jpg',
          concepts: [
            { id: 'cat', value: 1 },
            { id: 'dog', value: 1 },
          ],
          metadata: { note: 'Größe, 1,5' },
          geo: { geo_point: { latitude: 47.5, longitude: -12.25 } },
        },
      ],
      list.path,
    );
  const bad = [
    file('comma.csv', 'url,lat,lon\nhttps://x/a.jpg,"47,5",1\n'),
    file('windows.csv', new Uint8Array([...strToU8('url;concepts\nhttps://x/a.jpg;Stra'), 0xdf, 0x65])),
  ];
  for (const list of bad) assert.ok((await all(list))[0]?.problem, list.path);
});

test('an archive is a folder, packed; a text is addresses', async () => {
  const packed = zipSync({
    'p/1.jpg': strToU8('one'),
    '__MACOSX/p/1.jpg': strToU8('x'),
    'urls.txt': strToU8('https://x/1.jpg\n# not this\nhttps://x/2.jpg'),
  });
  const result = await all(file('all.zip', packed as Uint8Array<ArrayBuffer>));
  assert.deepEqual(result.map(plain), [
    { name: 'https://x/1.jpg', url: 'https://x/1.jpg' },
    { name: 'https://x/2.jpg', url: 'https://x/2.jpg' },
    { name: 'p/1.jpg', bytes: 3 },
  ]);
});

test('the samples bring whose they are and where they lie, and end where one is not to be had', async (t) => {
  let served = Number.POSITIVE_INFINITY;
  t.mock.method(globalThis, 'fetch', async (path: string) => {
    if (!served--) throw new TypeError('not reached');
    return new Response(await readFile(`.${path}`), { headers: { 'Content-Type': 'image/jpeg' } });
  });
  const result: Source[] = [];
  for await (const source of samples()) result.push(source);
  assert.equal(result.length, 42);
  assert.deepEqual(plain(result[41] as Source), {
    name: 'Canal in Venice',
    bytes: (await readFile('samples/01-canal-in-venice.jpg')).length,
    metadata: {
      name: 'Canal in Venice',
      author: 'Dimitris Kamaras',
      licence: 'CC BY 2.0',
      page: 'https://www.flickr.com/photos/127226743@N02/31290416685',
      place: 'as shown',
    },
    geo: { geo_point: { latitude: 45.436, longitude: 12.338 } },
  });
  [served, result.length] = [3, 0];
  await assert.rejects(
    async () => {
      for await (const source of samples()) result.push(source);
    },
    (failure) => failure instanceof Failure && failure.status === 0,
  );
  assert.equal(result.length, 2);
});
