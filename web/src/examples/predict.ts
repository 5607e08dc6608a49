// Example programs to copy: each predicts the concepts of one of the server's sample pictures. Secrets are environment variables. Only the
// page that shows a new key once writes the key into the program.

import { goProgramEnd } from './request';

export const tools = ['curl', 'javascript', 'python', 'go'] as const;
export type Tool = (typeof tools)[number];

export interface Call {
  readonly origin: string; // "https://host", without a slash at the end
  readonly model: string;
  readonly language: string; // language of the request; empty: the application's
  readonly by: 'key' | 'token';
  readonly key?: string; // 32 hex digits; written into the curl program instead of the variable
}

const sample = '/samples/42-lighthouse-in-the-sea.jpg';

/** Returns the part of the request's JSON that sets the language; empty if the request needs none. */
function config(c: Call): string {
  return c.language && `,"model":{"output_info":{"output_config":{"language":"${c.language}"}}}`;
}

function path(c: Call): string {
  return `/v2/models/${encodeURIComponent(c.model)}/outputs`;
}

/** Returns a complete program that makes a call. */
export function predictExample(tool: Tool, c: Call): string {
  return { curl, javascript, python, go }[tool](c);
}

/** Returns the JSON body of the request. base64: the placeholder that the program replaces by the picture. */
function body(c: Call, base64: string): string {
  return `{"inputs":[{"data":{"image":{"base64":"${base64}"}}}]${config(c)}}`;
}

function curl(c: Call): string {
  const token = `TOKEN=$(curl -s -X POST -u "$SIGHTLINE_CLIENT_ID:$SIGHTLINE_CLIENT_SECRET" \\
  ${c.origin}/v2/token | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')
`;
  const credential = c.by === 'token' ? 'Bearer $TOKEN' : `Key ${c.key ?? '$SIGHTLINE_KEY'}`;
  return `${c.by === 'token' ? token : ''}curl -s ${c.origin}${sample} |
  base64 | tr -d '\\n' |
  sed 's|.*|${body(c, '&')}|' |
  curl -s -H "Authorization: ${credential}" -H 'Content-Type: application/json' \\
    --data @- ${c.origin}${path(c)}`;
}

function javascript(c: Call): string {
  const credential = c.by === 'token' ? '`Bearer ${access_token}`' : '`Key ${process.env.SIGHTLINE_KEY}`';
  const token = `const { SIGHTLINE_CLIENT_ID: id, SIGHTLINE_CLIENT_SECRET: secret } = process.env;
const { access_token } = await (await fetch(\`\${origin}/v2/token\`, {
  method: 'POST',
  headers: { Authorization: \`Basic \${btoa(\`\${id}:\${secret}\`)}\` },
})).json();
`;
  return `const origin = '${c.origin}';
${c.by === 'token' ? token : ''}const picture = await (await fetch(\`\${origin}${sample}\`)).arrayBuffer();

const answer = await fetch(\`\${origin}${path(c)}\`, {
  method: 'POST',
  headers: { Authorization: ${credential}, 'Content-Type': 'application/json' },
  body: JSON.stringify({
    inputs: [{ data: { image: { base64: Buffer.from(picture).toString('base64') } } }],${
      config(c) && `\n    model: { output_info: { output_config: { language: '${c.language}' } } },`
    }
  }),
});
for (const { name, value } of (await answer.json()).outputs[0].data.concepts) console.log(name, value);`;
}

function python(c: Call): string {
  const credential = c.by === 'token' ? 'f"Bearer {token}"' : 'f"Key {os.environ[\'SIGHTLINE_KEY\']}"';
  const token = `client = f"{os.environ['SIGHTLINE_CLIENT_ID']}:{os.environ['SIGHTLINE_CLIENT_SECRET']}"
basic = base64.b64encode(client.encode()).decode()
ask = urllib.request.Request(f"{origin}/v2/token", method="POST", headers={"Authorization": f"Basic {basic}"})
token = json.load(urllib.request.urlopen(ask))["access_token"]
`;
  return `import base64, json, os, urllib.request

origin = "${c.origin}"
${c.by === 'token' ? token : ''}picture = urllib.request.urlopen(f"{origin}${sample}").read()
body = {
    "inputs": [{"data": {"image": {"base64": base64.b64encode(picture).decode()}}}],${
      config(c) && `\n    "model": {"output_info": {"output_config": {"language": "${c.language}"}}},`
    }
}
call = urllib.request.Request(
    f"{origin}${path(c)}",
    json.dumps(body).encode(),
    {"Authorization": ${credential}, "Content-Type": "application/json"},
)
for concept in json.load(urllib.request.urlopen(call))["outputs"][0]["data"]["concepts"]:
    print(concept["name"], concept["value"])`;
}

function go(c: Call): string {
  const credential = c.by === 'token' ? '"Bearer "+token(origin)' : '"Key "+os.Getenv("SIGHTLINE_KEY")';
  const token = `

func token(origin string) string {
	ask, err := http.NewRequest("POST", origin+"/v2/token", nil)
	check(err)
	ask.SetBasicAuth(os.Getenv("SIGHTLINE_CLIENT_ID"), os.Getenv("SIGHTLINE_CLIENT_SECRET"))
	answer, err := http.DefaultClient.Do(ask)
	check(err)
	defer answer.Body.Close()
	var t struct {
		Token string \`json:"access_token"\`
	}
	check(json.NewDecoder(answer.Body).Decode(&t))
	return t.Token
}`;
  const imports = ['bytes', 'encoding/base64', c.by === 'token' && 'encoding/json', 'fmt', 'io', 'net/http', 'os'];
  return `package main

import (
${imports
  .filter(Boolean)
  .map((i) => `\t"${i}"`)
  .join('\n')}
)

func main() {
	origin := "${c.origin}"
	picture, err := http.Get(origin + "${sample}")
	check(err)
	jpeg, err := io.ReadAll(picture.Body)
	check(err)

	body := fmt.Sprintf(\`${body(c, '%s')}\`, base64.StdEncoding.EncodeToString(jpeg))
	call, err := http.NewRequest("POST", origin+"${path(c)}", bytes.NewBufferString(body))
	check(err)
	call.Header.Set("Authorization", ${credential})
	${goProgramEnd(c.by === 'token' ? token : '')}`;
}
