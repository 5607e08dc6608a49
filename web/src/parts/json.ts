// A JSON parser that keeps the original text of every value, so that 12345678901234567890 and 1.0 do not change. The pages show and edit
// metadata with it.

export interface Json {
  readonly kind: 'string' | 'number' | 'word' | 'object' | 'list'; // word: true, false, null
  readonly raw: string;
  readonly members: readonly (readonly [string, Json])[]; // members of an object
  readonly items: readonly Json[]; // items of a list
}

/** Parses a JSON text. It throws a SyntaxError if the text is invalid. */
export function parse(text: string): Json {
  JSON.parse(text); // reports every error, with the browser's message, so that Reader needs no checks
  return new Reader(text).value();
}

/** Returns the value at a path of names; undefined if there is none. */
export function at(json: Json | undefined, ...path: readonly string[]): Json | undefined {
  let value = json;
  for (const name of path) value = value?.members.findLast(([key]) => key === name)?.[1];
  return value;
}

/** Parses typed text as JSON. Text that is not JSON becomes a string. */
export function parseOrQuote(text: string): Json {
  try {
    return parse(text.trim());
  } catch {
    return parse(JSON.stringify(text.trim()));
  }
}

/** Returns the JSON of nested objects along a path, with the value `raw` in the innermost one. */
export function nest(path: readonly string[], raw: string): string {
  return path.reduceRight((inner, name) => `{${JSON.stringify(name)}:${inner}}`, raw);
}

/** Formats JSON in lines, indented by two spaces. Each value keeps its original text. */
export function pretty(json: Json, indent = ''): string {
  const inner = `${indent}  `;
  if (json.kind === 'object' && json.members.length) {
    const lines = json.members.map(([name, value]) => `${inner}${JSON.stringify(name)}: ${pretty(value, inner)}`);
    return `{\n${lines.join(',\n')}\n${indent}}`;
  }
  if (json.kind === 'list' && json.items.length) {
    return `[\n${json.items.map((item) => inner + pretty(item, inner)).join(',\n')}\n${indent}]`;
  }
  return json.raw;
}

/** Reads a text that is valid JSON. */
class Reader {
  readonly #text: string;
  #place = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(): Json {
    this.#space();
    const from = this.#place;
    const members: [string, Json][] = [];
    const items: Json[] = [];
    const finish = (kind: Json['kind']): Json => ({ kind, raw: this.#text.slice(from, this.#place), members, items });
    switch (this.#text[from]) {
      case '{':
        this.#each('}', () => {
          const name: string = JSON.parse(this.#string());
          this.#space();
          this.#place++; // the colon
          members.push([name, this.value()]);
        });
        return finish('object');
      case '[':
        this.#each(']', () => items.push(this.value()));
        return finish('list');
      case '"':
        this.#string();
        return finish('string');
    }
    while (/[-+.0-9a-zA-Z]/.test(this.#text[this.#place] ?? '')) this.#place++;
    return finish(/[-0-9]/.test(this.#text[from] ?? '') ? 'number' : 'word');
  }

  #each(end: string, read: () => void): void {
    this.#place++;
    for (this.#space(); this.#text[this.#place] !== end; this.#space()) {
      if (this.#text[this.#place] === ',') this.#place++;
      this.#space();
      read();
    }
    this.#place++;
  }

  #string(): string {
    const from = this.#place++;
    while (this.#text[this.#place] !== '"') this.#place += this.#text[this.#place] === '\\' ? 2 : 1;
    return this.#text.slice(from, ++this.#place);
  }

  #space(): void {
    while (/\s/.test(this.#text[this.#place] ?? '')) this.#place++;
  }
}
