package describe

import (
	"fmt"
	"strings"

	"github.com/sightline-dev/sightline/core/api/call"
)

// introduction returns the description of the document, in Markdown.
func introduction() string {
	return strings.NewReplacer("»", "`", "«", "`").Replace(fmt.Sprintf(introductionText, call.MaxInputs, "»"+strings.Join(call.ShowWords, "«, »")+"«", call.DefaultPerPage, call.MaxPerPage, len(languages), strings.Join(languages, ", ")))
}

// introductionText is a format string, with » and « instead of backquotes. Its arguments are the maximum number of inputs in a call, the
// words of show, the default and the maximum number of rows on a page, the number of languages and their codes.
const introductionText = `Recognise what is in pictures and videos, train custom concepts, store pictures and search them by content, label,
metadata, location or similarity.

## Authentication

Send »Authorization: Key …« with an API key of your application, or »Authorization: Bearer …« with an
access token from »POST /v2/token«. A credential gives access to one application. Resources of other
applications are treated as if they did not exist. A call that lacks a required scope fails with 403 and
code 11007; fields that need a further scope are omitted.

## URLs

Every path of an application is also available under »/v2/users/{user_id}/apps/{app_id}«. Duplicate and trailing
slashes are ignored. For IDs in a path, write »/« as »%%2F« and »?« as »%%3F«.

## Requests

Bodies are JSON, whatever the »Content-Type«. A missing body counts as »{}«. »null« means that a field is
absent, and »[]« is accepted as an empty object. Unknown fields and query parameters are ignored.
One call takes at most %d inputs.

## Responses

Every response has a »status« with a code and a description; the schema »Status« lists all codes. Success is code
10000 with HTTP 200. Batch calls return one status per item: 10010 with HTTP 207 if some failed, 10020 with
HTTP 400 if all did. Lists are always present, also in errors. Other empty fields are omitted, unless a schema
requires them. Times are in UTC, with six digits after the second.

Responses contain only the documented fields. »app_id« of public models and concepts is »null«, or »main« for clients
that name themselves in the header »X-Clarifai-Client«. CORS is open: »Access-Control-Allow-Origin« is »*«, and OPTIONS
needs no credential.

## Members on request

Some clients fail on members that they do not know. So members that the interface does not define are in a response only
if the request names them: »?show=digest,progress« in the URL, or »"show": ["digest"]« in the body. The words are %s.
Members that do not apply are omitted. An unknown word is an error (400, 11102).

## Errors

»details« names the place in the request and what is wrong there. Each call lists its errors under *What can go wrong*.
Every call can also end with one of these:

- 401: the credential is missing (11102), unknown (11009), invalid or expired (11001).
- 402 (11006): the account has used all its calls.
- 403 (11007): the credential lacks a scope. »details« names it.
- 413 (40033): the body is too large.
- 429 (11005) or 503 (40030): too many calls, or the server is busy. Wait for the seconds in »Retry-After« and retry.
- 500 (99009): an internal error, which the server has logged.
- 504 (40032): the call took too long. Send fewer or smaller pictures.
- 507 (39998): the disk of the server is full. Reads still work.

For example, the clauses of this search are not a list:

    POST /v2/searches
    {"query":{"ands":7}}

    400
    {"status":{"code":40002,"description":"Invalid search request","details":"query.ands: number, expected array"},"hits":[]}

## Pagination

»page« starts at 1. »per_page« defaults to %d and is at most %d. Pages after the last are empty.
An answer above the limit of the server, 16 MB by default, is an error (11102) that states the largest »per_page« that fits.

## Languages

Names of public concepts are available in %d languages: %s. A call that sets no language uses the application's
default. Only the general model supports languages other than English. If the application's default is not
English, calls with any other model must set »en«.

## Replicas

A replica is a copy of an application, at an edge or in a browser. Edges and browser replicas answer the same calls
locally. Their writes are durable locally and then sent to the origin: »X-Sightline-Durability« is »local« at a
replica and »origin« at the origin. Pending writes and conflicts are listed under *Replicas*.

## Notices

The status of a success is always the same. »X-Sightline-Notice« has what a caller may want to know about a successful call, as a JSON list in
ASCII: »[{"at":"per_page","text":"1000 is the maximum."}]«. »at« is the place in the request.

## Quota

Responses to calls that count against an account's quota have »X-Sightline-Calls-Left« if the account has a limit.
`
