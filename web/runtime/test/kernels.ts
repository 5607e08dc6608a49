// A small module of kernels, as bytes. It imports the guest's memory. Each kernel is a few instructions whose result a test can recognise.

const i32 = 0x7f;
const i64 = 0x7e;
const f32 = 0x7d;
const text = (s: string) => [s.length, ...Buffer.from(s)];
const section = (id: number, body: number[]) => [id, body.length, ...body];
const code = (body: number[]) => [body.length + 2, 0, ...body, 0x0b];

/** quote: the byte at src, plus n. base64: n << 32 | room. axpy: y[0] += f · x[0]. */
export const kernels = new Uint8Array([
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
  ...section(1, [
    3,
    ...[0x60, 2, i32, i32, 1, i32],
    ...[0x60, 4, i32, i32, i32, i32, 1, i64],
    ...[0x60, 4, i32, f32, i32, i32, 0],
  ]),
  ...section(2, [1, ...text('env'), ...text('memory'), 2, 0, 1]),
  ...section(3, [3, 0, 1, 2]),
  ...section(7, [3, ...text('quote'), 0, 0, ...text('base64'), 0, 1, ...text('axpy'), 0, 2]),
  ...section(10, [
    3,
    ...code([0x20, 0, 0x2d, 0, 0, 0x20, 1, 0x6a]),
    ...code([0x20, 3, 0xad, 0x42, 32, 0x86, 0x20, 1, 0xad, 0x84]),
    ...code([0x20, 0, 0x20, 0, 0x2a, 2, 0, 0x20, 1, 0x20, 2, 0x2a, 2, 0, 0x94, 0x92, 0x38, 2, 0]),
  ]),
]);
