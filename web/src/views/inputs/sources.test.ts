import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { Failure } from '../../api/console';
import { type FoundFile, filesOfDrop, type Source, samples, sources } from './sources';
import { zipOf } from './zip.testkit';

const file = (path: string, text: string | Uint8Array<ArrayBuffer>, type = ''): FoundFile => ({
  path,
  file: new File([text], path.replace(/^.*\//, ''), { type }),
});
const all = async (...found: FoundFile[]) => {
  const result: Source[] = [];
  for await (const source of sources(found)) result.push(source);
  return result;
};
const picture = (content = '') => `GIF89a${content}`;
const plain = ({ blob, ...rest }: Source) => ({ ...rest, ...(blob && { bytes: blob.size }) });

test('pictures are recognised by their content, and each other file is reported or left out', async () => {
  const result = await all(
    file('a/1.jpg', picture()),
    file('a/notes.jpg', 'no picture at all', 'image/jpeg'),
    file('a/film.mp4', '\0\0\0\x18ftypisom\0\0\0\0isom'),
    file('a/empty.jpg', ''),
    file('a/.DS_Store', 'x'),
    file('a/.hidden.jpg', picture()),
    file('a/@eaDir/1.jpg/SYNOPHOTO_THUMB_XL.jpg', picture()),
    file('a/1.jpg.json', '{}'),
    file('a/BMW service history.txt', 'BMW 320d, oil in March'),
    file('a/links.txt', 'https://x/1.jpg'),
    file('.chosen.gif', picture()),
    file('.folder/2.gif', picture()),
    { path: 'a/locked', failure: new DOMException('not allowed', 'NotReadableError') },
    { path: 'a/.locked', failure: new Error('not allowed') },
  );
  assert.deepEqual(result.map(plain), [
    { name: 'a/1.jpg', file: 'a/1.jpg', bytes: 6 },
    { name: 'a/notes.jpg', leftOut: 'unknown' },
    { name: 'a/film.mp4', problem: '' },
    { name: 'a/empty.jpg', unread: 'empty' },
    { name: 'a/.DS_Store', leftOut: 'system' },
    { name: 'a/.hidden.jpg', leftOut: 'hidden' },
    { name: 'a/@eaDir/1.jpg/SYNOPHOTO_THUMB_XL.jpg', leftOut: 'thumbnails' },
    { name: 'a/1.jpg.json', leftOut: 'sidecars' },
    { name: 'a/BMW service history.txt', leftOut: 'unknown' },
    { name: 'a/links.txt', leftOut: 'unknown' },
    { name: '.chosen.gif', file: '.chosen.gif', bytes: 6 },
    { name: '.folder/2.gif', file: '.folder/2.gif', bytes: 6 },
    { name: 'a/locked', unread: { why: 'not allowed' } },
    { name: 'a/.locked', leftOut: 'hidden' },
  ]);
});

test('a file or folder of a drop that the browser cannot read does not end the walk', async () => {
  const fileEntry = (path: string, text?: string) => ({
    isFile: true,
    fullPath: path,
    file: (resolve: (file: File) => void, reject: (failure: Error) => void) =>
      text === undefined ? reject(new Error('gone')) : resolve(new File([text], path)),
  });
  const folder = (path: string, ...batches: (object[] | Error)[]) => ({
    isFile: false,
    fullPath: path,
    createReader: () => ({
      readEntries: (resolve: (entries: object[]) => void, reject: (failure: Error) => void) => {
        const batch = batches.shift() ?? [];
        if (batch instanceof Error) reject(batch);
        else resolve(batch);
      },
    }),
  });
  const root = folder(
    '/f',
    [fileEntry('/f/1.gif', picture()), folder('/f/locked', new Error('denied')), fileEntry('/f/2.gif')],
    [folder('/f/changing', [fileEntry('/f/changing/3.gif', picture())], new Error('changed'))],
    [fileEntry('/f/4.gif', picture())],
  );
  const items = [{ kind: 'file', webkitGetAsEntry: () => root }];
  const result = await all(...(await filesOfDrop({ items } as unknown as DataTransfer)));
  assert.deepEqual(
    result.map(({ name, unread }) => [name, unread]),
    [
      ['f/1.gif', undefined],
      ['f/locked', { why: 'denied' }],
      ['f/2.gif', { why: 'gone' }],
      ['f/changing/3.gif', undefined],
      ['f/changing', { why: 'changed' }],
      ['f/4.gif', undefined],
    ],
  );
});

test('lines are inputs in the form of the API or in a flat form', async () => {
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
    { name: 'c.jpg', file: 'in/c.jpg', bytes: 3, geo: { geo_point: { longitude: 11.6, latitude: 48.1 } } },
  ]);
  assert.equal(result.length, 5); // a picture that the list does not name is left out
  assert.ok(result[3]?.problem && result[4]?.problem);
});

test('rows of a table are inputs, with the columns of the import command', async () => {
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

test('tables with semicolons, tabs, decimal commas, byte order marks and UTF-16 are read', async () => {
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
    file(
      'windows.csv',
      new Uint8Array([...new TextEncoder().encode('url;concepts\nhttps://x/a.jpg;Stra'), 0xdf, 0x65]),
    ),
  ];
  for (const list of bad) {
    const [source] = await all(list);
    assert.ok(source?.problem || source?.unread, list.path);
  }
});

test('an archive is read like a folder, and a text is read as URLs', async () => {
  const packed = zipOf([
    { name: 'p/1.jpg', text: picture() },
    { name: 'p/1.jpg', text: picture('other') },
    { name: 'p/2.bin', text: 'x' },
    { name: 'p/link.jpg', text: '1.jpg', madeBy: 3, mode: 0o120777 },
    { name: 'p/secret.jpg', text: picture(), flags: 1 },
    { name: 'p/damaged.jpg', text: picture(), crc: 1 },
    { name: '__MACOSX/p/1.jpg', text: 'x' },
    { name: 'urls.txt', text: 'https://x/1.jpg\n# not this\nhttps://x/2.jpg' },
  ]);
  const result = await all(
    { path: 'all.zip', file: new File([packed], 'all.zip') },
    file('bad.zip', 'no zip'),
    file('3.gif', picture()),
    file('chosen.txt', 'https://x/3.jpg\n# not this\nhttps://x/4.jpg'),
  );
  assert.deepEqual(result.map(plain), [
    { name: 'bad.zip', unread: 'damaged' },
    { name: 'https://x/3.jpg', url: 'https://x/3.jpg' },
    { name: 'https://x/4.jpg', url: 'https://x/4.jpg' },
    { name: 'p/1.jpg', file: 'p/1.jpg', isInMemory: true, bytes: 6 },
    { name: 'p/1.jpg', file: 'p/1.jpg', isInMemory: true, bytes: 11 },
    { name: 'p/2.bin', leftOut: 'unknown' },
    { name: 'p/link.jpg', unread: 'link' },
    { name: 'p/secret.jpg', unread: 'encrypted' },
    { name: 'p/damaged.jpg', unread: 'damaged' },
    { name: '__MACOSX/p/1.jpg', leftOut: 'system' },
    { name: 'urls.txt', leftOut: 'unknown' },
    { name: '3.gif', file: '3.gif', bytes: 6 },
  ]);
});

test('the samples have their authors and locations, and end at one that cannot be loaded', async (t) => {
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

test('the archives of the field test are read', async (t) => {
  const field = '../../shared/field/import';
  if (!existsSync(field)) return t.skip('its files are not here');
  const expected = {
    'windows-cp437.zip': ['Sommer/München Olympiastadion.jpg', 'Sommer/second picture in it.jpg'],
    'backslash.zip': ['Fotos/Urlaub 2019/first-picture.jpg', 'second-picture-of-three.jpg'],
    'same-name-twice.zip': ['pictures/IMG_0001-copy.jpg', 'pictures/IMG_0001-copy.jpg'],
    'two-cameras.zip': ['camera A/IMG_0001.JPG', 'camera B/IMG_0001.JPG'],
    'BMW service history.txt': [],
  };
  for (const [name, want] of Object.entries(expected)) {
    const result = await all(file(name, new Uint8Array(await readFile(`${field}/${name}`))));
    assert.deepEqual(
      result.flatMap((source) => (source.blob ? [source.name] : [])),
      want,
    );
    assert.ok(result.every(({ problem, unread }) => problem === undefined && !unread));
  }
});
