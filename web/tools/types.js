// Writes src/v2.d.ts, the types of the /v2 API, from openapi/openapi.json.
import { readFileSync, writeFileSync } from 'node:fs';
import openapi, { astToString } from 'openapi-typescript';

const description = new URL('../openapi/openapi.json', import.meta.url);
const options = { immutable: true, arrayLength: true };
const types = astToString(await openapi(JSON.parse(readFileSync(description, 'utf8')), options));
// Only tuples, which arrayLength makes, are still mutable.
writeFileSync(new URL('../src/v2.d.ts', import.meta.url), types.replace(/(?<=[:|] )\[$/gm, 'readonly ['));
