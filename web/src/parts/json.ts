// JSON that keeps its bytes: every value knows the text that it was written as, so that 12345678901234567890 and 1.0
// stay what they are. Metadata is shown and changed by this.

export interface Json {
  readonly kind: 'string' | 'number' | 'word' | 'object' | 'list'; // word: true, false, null
  readonly raw: string;
  readonly members: readonly (readonly [string, Json])[]; // of an object
  readonly items: readonly Json[]; // of a list
}

/** Reads a JSON text; throws a SyntaxError if it is invalid. */
export function parse(text: string): Json {
  JSON.parse(text); // all that is wrong is found here, and said in the browser's words
  return new Reader(text).value();
}

/** The value at a path of names; undefined where nothing is. */
export function at(json: Json | undefined, ...path: readonly string[]): Json | undefined {
  let value = json;
  for (const name of path) value = value?.members.findLast(([key]) => key === name)?.[1];
  return value;
}

/** The typed text as JSON: itself if it is JSON, and a string otherwise. */
export function parseOrQuote(text: string): Json {
  try {
    return parse(text.trim());
  } catch {
    return parse(JSON.stringify(text.trim()));
  }
}

/** The JSON of objects within each other along a path, with a value innermost. */
export function nest(path: readonly string[], raw: string): string {
  return path.reduceRight((inner, name) => `{${JSON.stringify(name)}:${inner}}`, raw);
}

/** The same values in lines, indented by two, each written as it was. */
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

/** Goes through a text that is known to be JSON. */
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
          const name = JSON.parse(this.#string()) as string;
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
    return finish(/[-0-9]/.test(this.#text[from] as string) ? 'number' : 'word');
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
