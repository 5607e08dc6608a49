import assert from 'node:assert/strict';
import { test } from 'node:test';
import { acceptPictures, isPicture, picturesIn } from './pictureFiles';

const file = (name: string, type: string) => new File([], name, { type });

test('pictures are recognised by type or extension, and an unknown type is tried', () => {
  const all = [
    file('a.jpg', 'image/jpeg'),
    file('b.txt', 'text/plain'),
    file('c.bin', ''),
    file('d.svg', 'image/svg+xml'),
    file('e.NEF', 'application/octet-stream'),
    file('f.zip', 'application/zip'),
  ];
  assert.deepEqual(
    picturesIn(all).map((f) => f.name),
    ['a.jpg', 'c.bin', 'd.svg', 'e.NEF'],
  );
});

test('file choosers offer HEIC and camera raw, and folders count them as pictures', () => {
  for (const extension of 'heic avif jxl cr2 cr3 nef arw dng orf rw2 raf pef srw crw mrw x3f'.split(' ')) {
    assert.ok(acceptPictures.split(',').includes(`.${extension}`), extension);
    assert.ok(isPicture({ name: `DSC_1.${extension.toUpperCase()}`, type: '' }), extension);
  }
  assert.ok(acceptPictures.startsWith('image/*,'));
  assert.ok(!isPicture({ name: 'notes.txt', type: '' }));
});
