// The messages between a host and the module: wasm/README.md, "Envelopes". A message is a byte 1, the version, and fields in the wire
// format of Protocol Buffers. A reader returns views of its input.

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

/** The size in bytes from which Writer holds a reference to a field's bytes and copies them only into the finished message. */
const large = 4096;

/** Writes one message. It omits fields that are zero, empty or undefined. The caller must not change its values before `finish`. */
export class Writer {
  #parts: Uint8Array[] = []; // the bytes before #buf
  #length = 0; // total length of #parts
  #buf = new Uint8Array(256);
  #n = 0; // number of bytes in #buf

  /** Returns the writer of an envelope, which begins with its version. */
  static envelope(): Writer {
    const w = new Writer();
    w.#buf[w.#n++] = version;
    return w;
  }

  #reserve(n: number): void {
    if (this.#n + n <= this.#buf.length) return;
    const grown = new Uint8Array(Math.max(2 * this.#buf.length, this.#n + n));
    grown.set(this.#buf.subarray(0, this.#n));
    this.#buf = grown;
  }

  /** Appends `v` as a part, without copying it. */
  #part(v: Uint8Array): void {
    this.#parts.push(this.#buf.subarray(0, this.#n), v);
    this.#length += this.#n + v.length;
    this.#buf = new Uint8Array(256);
    this.#n = 0;
  }

  #varint(v: number): void {
    this.#reserve(10);
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

  /** Writes a text field, from a string or from its UTF-8 bytes. */
  text(number: number, v: string | Uint8Array | undefined): this {
    if (!v?.length) return this;
    return typeof v === 'string' ? this.element(number, v) : this.message(number, v);
  }

  /** Writes a text of a list, even an empty one. */
  element(number: number, v: string): this {
    return this.message(number, encoder.encode(v));
  }

  raw(number: number, v: Uint8Array | undefined): this {
    return v?.length ? this.message(number, v) : this;
  }

  /** Writes a nested message or bytes, even empty ones. */
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

  /** Appends fields that are already encoded. */
  append(v: Uint8Array): this {
    if (v.length >= large) this.#part(v);
    else {
      this.#reserve(v.length);
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
  writeTo(to: Uint8Array): void {
    let at = 0;
    for (const part of this.#parts) {
      to.set(part, at);
      at += part.length;
    }
    to.set(this.#buf.subarray(0, this.#n), at);
  }

  /** Returns the message in a new array, which the caller owns. */
  finish(): Uint8Array<ArrayBuffer> {
    const all = new Uint8Array(this.length);
    this.writeTo(all);
    return all;
  }
}

/** Reads the fields of one message in their order: `while (r.next()) switch (r.number) …` */
export class Reader {
  /** The number of the current field. */
  number = 0;
  #buf: Uint8Array;
  #at = 0;
  #type = 0;
  #start = 0; // offset of the field's tag
  #value = 0n; // value of a varint field
  #from = 0; // offset of the field's bytes, which end at #at

  /** Creates a reader of fields without a version before them. */
  constructor(fields: Uint8Array) {
    this.#buf = fields;
  }

  /** Returns a reader of an envelope's fields. It throws an EnvelopeError if the version is another one. */
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

  #checkType(type: number): void {
    if (this.#type !== type) throw new EnvelopeError(`field ${this.number} has wire type ${this.#type}, want ${type}`);
  }

  /** Returns a number below 2⁵³. It throws an EnvelopeError for a larger one. */
  uint(): number {
    const v = Number(this.big());
    if (!Number.isSafeInteger(v)) throw new EnvelopeError(`field ${this.number} is ${this.#value}`);
    return v;
  }

  /** Returns a number of up to 64 bits. */
  big(): bigint {
    this.#checkType(varint);
    return this.#value;
  }

  bool(): boolean {
    return this.big() !== 0n;
  }

  /** Returns a number that is encoded in eight bytes. */
  fixed64(): bigint {
    this.#checkType(fixed64);
    return new DataView(this.#buf.buffer, this.#buf.byteOffset + this.#from, 8).getBigUint64(0, true);
  }

  /** Returns the bytes of the field, as a view. */
  raw(): Uint8Array {
    this.#checkType(bytes);
    return this.#buf.subarray(this.#from, this.#at);
  }

  text(): string {
    return decoder.decode(this.raw());
  }

  message(): Reader {
    return new Reader(this.raw());
  }

  /** Returns the encoded field, tag and value, as a view. */
  encodedField(): Uint8Array {
    return this.#buf.subarray(this.#start, this.#at);
  }
}
