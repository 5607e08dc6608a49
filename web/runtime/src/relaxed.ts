// Tests whether the WebAssembly engine's relaxed dot product is exact for all bytes. Only then do the kernels with relaxed instructions
// return the same bytes as the other kernels. The specification lets an engine choose the result if bit 7 of a byte in the second operand
// is set. An engine must choose once for all code. In practice the processor decides: VPDPBUSD takes the bytes as unsigned and SDOT as
// signed, and both are exact. Processors without these instructions clip sums to 16 bits.

/** How the engine reads the bytes of the second operand. */
export type Dot = 'unsigned' | 'signed';

/** A module with dot(a, b, sum). It returns one lane of i32x4.relaxed_dot_i8x16_i7x16_add_s, with a, b and sum in all lanes. */
const probe = new Uint8Array([
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
  ...[1, 8, 1, 0x60, 3, 0x7f, 0x7f, 0x7f, 1, 0x7f], // (i32, i32, i32) → i32
  ...[3, 2, 1, 0],
  ...[7, 7, 1, 3, 0x64, 0x6f, 0x74, 0, 0], // dot
  ...[10, 22, 1, 20, 0, 0x20, 0, 0xfd, 0x11, 0x20, 1, 0xfd, 0x11, 0x20, 2, 0xfd, 0x11], // splat each
  ...[0xfd, 0x93, 2, 0xfd, 0x1b, 0, 0x0b],
]);

const words = [0x7f7f7f7f, 0x80808080, 0xffffffff, 0x017f80ff, 0xff80017f, 0x80ff7f01, 0x7f80ff00];
const sums = [0, 0x7fffffff, -0x80000000];

type Product = (a: number, b: number, sum: number) => number;

/** Returns how the engine's dot product reads bytes, or undefined if it does not exist or is not exact. */
export function relaxedDot(): Dot | undefined {
  if (!WebAssembly.validate(probe)) return undefined;
  const { dot } = new WebAssembly.Instance(new WebAssembly.Module(probe)).exports;
  return kindOf(dot as Product);
}

/** Returns how a dot product reads bytes, or undefined if it is not exact. */
export function kindOf(dot: Product): Dot | undefined {
  const exact = (kind: Dot) =>
    words.every((a) => words.every((b) => sums.every((sum) => dot(a, b, sum) === exactDot(kind, a, b, sum))));
  return (['unsigned', 'signed'] as const).find(exact);
}

function exactDot(kind: Dot, a: number, b: number, sum: number): number {
  let all = sum;
  for (const shift of [0, 8, 16, 24]) {
    const second = kind === 'signed' ? signedByte(b, shift) : (b >>> shift) & 255;
    all += signedByte(a, shift) * second;
  }
  return all | 0;
}

const signedByte = (word: number, shift: number) => (word << (24 - shift)) >> 24;
