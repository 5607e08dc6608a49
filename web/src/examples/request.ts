// Example programs to copy for one call with a JSON body. The key is an environment variable, never the secret itself.

export const tools = ['curl', 'javascript', 'go'] as const;
export type Tool = (typeof tools)[number];

export interface Call {
  readonly origin: string; // "https://host", without a slash at the end
  readonly path: string; // "/v2/searches"
  readonly body: unknown;
}

/** Returns a complete program that makes a call. */
export function program(tool: Tool, c: Call): string {
  return { curl, javascript, go }[tool](c);
}

/**
 * Returns the end of a Go program: the code that sends the prepared request `call` and prints the answer. between: further functions of
 * the program, each after an empty line.
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

const wide = 72; // maximum characters of a value on one line, with its indentation

/** Formats JSON with an indentation of two spaces. Short values stay on one line. */
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
  return Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${pretty(one, indent)}`)[0] ?? '';
}

/** Formats JSON on one line, with spaces after commas and colons. */
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
