// The messages between a host and the module: wasm/README.md, "Envelopes". They are fields in the wire format of Protocol Buffers after a
// byte 1. A reader returns views of its input.

const version = 1;
const varint = 0;
const fixed64 = 1;
const bytes = 2;
const fixed32 = 5;

/** Bytes that are not a valid envelope of this version. */
export class EnvelopeError extends Error {
  override name = 'EnvelopeError';
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** From this size, in bytes, a field is copied only once, into the message. */
const large = 4096;

/** Writes one message. It omits fields that are zero, empty or undefined. The caller does not change its values before `finish`. */
export class Writer {
  #parts: Uint8Array[] = []; // what is before #buf
  #length = 0; // of the parts
  #buf = new Uint8Array(256);
  #n = 0;

  /** An envelope, which begins with its version. */
  static envelope(): Writer {
    const w = new Writer();
    w.#buf[w.#n++] = version;
    return w;
  }

  #room(n: number): void {
    if (this.#n + n <= this.#buf.length) return;
    const grown = new Uint8Array(Math.max(2 * this.#buf.length, this.#n + n));
    grown.set(this.#buf.subarray(0, this.#n));
    this.#buf = grown;
  }

  /** Makes a part of bytes, behind what has been written by now. */
  #part(v: Uint8Array): void {
    this.#parts.push(this.#buf.subarray(0, this.#n), v);
    this.#length += this.#n + v.length;
    this.#buf = new Uint8Array(256);
    this.#n = 0;
  }

  #varint(v: number): void {
    this.#room(10);
    while (v >= 0x80) {
      this.#buf[this.#n++] = (v % 0x80) | 0x80;
      v = Math.floor(v / 0x80);
    }
    this.#buf[this.#n++] = v;
  }

  uint(number: number, v: number | undefined): this {
    if (!v) return this;
    if (!Number.isSafeInteger(v) || v < 0) throw new RangeError(`field ${number}: ${v} is no uint`);
    this.#varint(number * 8 + varint);
    this.#varint(v);
    return this;
  }

  bool(number: number, v: boolean | undefined): this {
    return this.uint(number, v ? 1 : 0);
  }

  /** A text, or its bytes. */
  text(number: number, v: string | Uint8Array | undefined): this {
    if (!v?.length) return this;
    return typeof v === 'string' ? this.element(number, v) : this.message(number, v);
  }

  /** A text of a list, which may be empty. */
  element(number: number, v: string): this {
    return this.message(number, encoder.encode(v));
  }

  raw(number: number, v: Uint8Array | undefined): this {
    return v?.length ? this.message(number, v) : this;
  }

  /** Fields within this message, or bytes, which may be empty. */
  message(number: number, v: Writer | Uint8Array): this {
    this.#varint(number * 8 + bytes);
    if (!(v instanceof Writer)) {
      this.#varint(v.length);
      return this.append(v);
    }
    this.#varint(v.length);
    for (const part of v.#parts) this.append(part);
    return this.append(v.#buf.subarray(0, v.#n));
  }

  /** Bytes as they are: fields that are encoded already. */
  append(v: Uint8Array): this {
    if (v.length >= large) this.#part(v);
    else {
      this.#room(v.length);
      this.#buf.set(v, this.#n);
      this.#n += v.length;
    }
    return this;
  }

  /** The length of the message, in bytes. */
  get length(): number {
    return this.#length + this.#n;
  }

  /** Writes the message to the beginning of `to`. */
  into(to: Uint8Array): void {
    let at = 0;
    for (const part of this.#parts) {
      to.set(part, at);
      at += part.length;
    }
    to.set(this.#buf.subarray(0, this.#n), at);
  }

  /** The message, in new memory. */
  finish(): Uint8Array<ArrayBuffer> {
    const all = new Uint8Array(this.length);
    this.into(all);
    return all;
  }
}

/** Reads the fields of one message, in the order in which they stand: `while (r.next()) switch (r.number) …` */
export class Reader {
  /** The number of the field. */
  number = 0;
  #buf: Uint8Array;
  #at = 0;
  #type = 0;
  #start = 0; // of the field's tag
  #value = 0n; // of a number
  #from = 0; // of bytes, up to #at

  /** Fields, without a version before them. */
  constructor(fields: Uint8Array) {
    this.#buf = fields;
  }

  /** The fields of an envelope. */
  static envelope(data: Uint8Array): Reader {
    if (data[0] !== version) throw new EnvelopeError(`version ${data[0]} of an envelope, want ${version}`);
    return new Reader(data.subarray(1));
  }

  #varint(): bigint {
    let low = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      const b = this.#byte();
      low |= (b & 0x7f) << shift;
      if (b < 0x80) return BigInt(low);
    }
    let v = BigInt(low);
    for (let shift = 28n; shift < 70n; shift += 7n) {
      const b = this.#byte();
      v |= BigInt(b & 0x7f) << shift;
      if (b < 0x80) {
        if (v >> 64n) break;
        return v;
      }
    }
    throw new EnvelopeError('a number above 64 bits');
  }

  #byte(): number {
    const b = this.#buf[this.#at++];
    if (b === undefined) throw new EnvelopeError('an envelope that ends within a field');
    return b;
  }

  #skip(n: number): void {
    this.#from = this.#at;
    this.#at += n;
    if (this.#at > this.#buf.length) throw new EnvelopeError('an envelope that ends within a field');
  }

  /** Goes to the next field and reports whether there is one. */
  next(): boolean {
    if (this.#at >= this.#buf.length) return false;
    this.#start = this.#at;
    const tag = this.#varint();
    this.number = Number(tag >> 3n);
    this.#type = Number(tag & 7n);
    if (this.number < 1 || this.number >= 1 << 29) throw new EnvelopeError(`a field's number ${this.number}`);
    switch (this.#type) {
      case varint:
        this.#value = this.#varint();
        break;
      case fixed64:
        this.#skip(8);
        break;
      case fixed32:
        this.#skip(4);
        break;
      case bytes:
        this.#skip(Number(this.#varint()));
        break;
      default:
        throw new EnvelopeError(`wire type ${this.#type}`);
    }
    return true;
  }

  #is(type: number): void {
    if (this.#type !== type) throw new EnvelopeError(`field ${this.number} has wire type ${this.#type}, want ${type}`);
  }

  /** A number up to 2⁵³. */
  uint(): number {
    const v = Number(this.big());
    if (!Number.isSafeInteger(v)) throw new EnvelopeError(`field ${this.number} is ${this.#value}`);
    return v;
  }

  /** Any number of 64 bits. */
  big(): bigint {
    this.#is(varint);
    return this.#value;
  }

  bool(): boolean {
    return this.big() !== 0n;
  }

  /** A number of eight bytes. */
  fixed64(): bigint {
    this.#is(fixed64);
    return new DataView(this.#buf.buffer, this.#buf.byteOffset + this.#from, 8).getBigUint64(0, true);
  }

  /** The bytes of the field: a view. */
  raw(): Uint8Array {
    this.#is(bytes);
    return this.#buf.subarray(this.#from, this.#at);
  }

  text(): string {
    return decoder.decode(this.raw());
  }

  message(): Reader {
    return new Reader(this.raw());
  }

  /** The field as it is written, tag and value: a view. */
  whole(): Uint8Array {
    return this.#buf.subarray(this.#start, this.#at);
  }
}
