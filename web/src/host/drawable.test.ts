import assert from 'node:assert/strict';
import { test } from 'node:test';
import { drawable } from './drawable.svelte';

const globals = globalThis as unknown as Record<string, unknown>;
const jpeg = new Blob(['jpeg'], { type: 'image/jpeg' });

/** Runs `work` in a browser whose img elements draw only JPEGs, and which knows this if `knows` is set. It returns the drawn types. */
async function inBrowser(knows: boolean, work: () => Promise<void>): Promise<string[]> {
  const tried: string[] = [];
  const types = new Map<string, string>();
  const create = URL.createObjectURL;
  URL.createObjectURL = (blob) => {
    const address = create(blob);
    types.set(address, (blob as Blob).type);
    return address;
  };
  globals.Image = class {
    onload = () => {};
    onerror = () => {};
    set src(address: string) {
      const type = types.get(address) as string;
      tried.push(type);
      setTimeout(() => (type === 'image/jpeg' ? this.onload() : this.onerror()));
    }
  };
  if (knows) globals.ImageDecoder = { isTypeSupported: async (type: string) => type === 'image/jpeg' };
  try {
    await work();
  } finally {
    URL.createObjectURL = create;
    delete globals.Image;
    delete globals.ImageDecoder;
  }
  return tried;
}

for (const knows of [true, false])
  test(`a browser that ${knows ? 'knows' : 'does not know'} its formats shows the rendition of others only`, async () => {
    let renditions = 0;
    const render = async () => {
      renditions++;
      return jpeg;
    };
    const tried = await inBrowser(knows, async () => {
      const heic = new Blob(['heic'], { type: 'image/heic' });
      const unnamed = new Blob(['raw']);
      assert.equal((await drawable(jpeg, render)).blob, jpeg);
      assert.equal(renditions, 0);
      assert.equal((await drawable(heic, render)).blob, jpeg);
      assert.equal((await drawable(unnamed, render)).blob, jpeg);
      assert.equal(renditions, 2);
      await assert.rejects(
        drawable(heic, () => Promise.reject(new Error('no decoder'))),
        /no decoder/,
      );
    });
    assert.deepEqual(tried, knows ? ['image/jpeg', ''] : ['image/jpeg', 'image/heic', '', 'image/heic']);
  });
