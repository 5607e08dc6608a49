// One call with a JSON body, as programs to copy. The key is a variable, never the secret.

export const tools = ['curl', 'javascript', 'go'] as const;
export type Tool = (typeof tools)[number];

export interface Call {
  readonly origin: string; // "https://host", no slash at its end
  readonly path: string; // "/v2/searches"
  readonly body: unknown;
}

/** The program that makes a call, to be pasted as it is. */
export function program(tool: Tool, c: Call): string {
  return { curl, javascript, go }[tool](c);
}

/**
 * The end of a program in Go: what it sends a call that it has prepared with, and prints of the answer. between: other
 * functions of its, each after an empty line.
 */
export function goProgramEnd(between = ''): string {
  return `call.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(call)
	check(err)
	defer answer.Body.Close()
	_, err = io.Copy(os.Stdout, answer.Body)
	check(err)
}${between}

func check(err error) {
	if err != nil {
		panic(err)
	}
}`;
}

const wide = 72; // characters that a value has on one line

/** JSON as people write it: what is short stays on its line. */
export function pretty(value: unknown, indent = ''): string {
  const short = oneLine(value);
  if (typeof value !== 'object' || value === null || indent.length + short.length <= wide) return short;
  const inner = `${indent}  `;
  const list = Array.isArray(value);
  const parts = list
    ? value.map((one) => pretty(one, inner))
    : Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${pretty(one, inner)}`);
  const [open, close] = list ? '[]' : '{}';
  // A value with one member needs no separate line.
  if (parts.length === 1 && !list) return `${open}${pretty1(value, indent)}${close}`;
  return `${open}\n${parts.map((part) => inner + part).join(',\n')}\n${indent}${close}`;
}

function pretty1(value: object, indent: string): string {
  const [[name, one]] = Object.entries(value) as [[string, unknown]];
  return `${JSON.stringify(name)}: ${pretty(one, indent)}`;
}

/** JSON on one line, with spaces after commas and colons. */
function oneLine(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(oneLine).join(', ')}]`;
  if (typeof value === 'object' && value !== null) {
    return `{${Object.entries(value)
      .map(([name, one]) => `${JSON.stringify(name)}: ${oneLine(one)}`)
      .join(', ')}}`;
  }
  return JSON.stringify(value);
}

function curl({ origin, path, body }: Call): string {
  return `curl -s -X POST ${origin}${path} \\
  -H "Authorization: Key $SIGHTLINE_KEY" \\
  -H 'Content-Type: application/json' -d '${pretty(body).replaceAll("'", "'\\''")}'`;
}

function javascript({ origin, path, body }: Call): string {
  return `const answer = await fetch('${origin}${path}', {
  method: 'POST',
  headers: { Authorization: \`Key \${process.env.SIGHTLINE_KEY}\`, 'Content-Type': 'application/json' },
  body: JSON.stringify(${pretty(body, '  ')}),
});
for (const { score, input } of (await answer.json()).hits) console.log(score, input.id);`;
}

function go({ origin, path, body }: Call): string {
  const text = pretty(body);
  const literal = text.includes('`') ? JSON.stringify(text) : `\`${text}\``;
  return `package main

import (
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	body := strings.NewReader(${literal})
	call, err := http.NewRequest("POST", "${origin}${path}", body)
	check(err)
	call.Header.Set("Authorization", "Key "+os.Getenv("SIGHTLINE_KEY"))
	${goProgramEnd()}`;
}
