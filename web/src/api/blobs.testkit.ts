// The part of the browser's FileReader that the pages use, for tests in Node.
class Reader {
  result = '';
  onload = () => {};
  async readAsDataURL(blob: Blob) {
    this.result = `data:;base64,${Buffer.from(await blob.arrayBuffer()).toString('base64')}`;
    this.onload();
  }
}
Object.assign(globalThis, { FileReader: Reader });
