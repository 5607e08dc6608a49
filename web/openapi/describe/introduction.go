package describe

import (
	"fmt"
	"strings"
)

// introduction is the description of the document, in Markdown.
func introduction() string {
	return strings.NewReplacer("»", "`", "«", "`").Replace(fmt.Sprintf(`Recognise what is in pictures, teach the service concepts of your own, keep pictures in an
index and find them again by what is in them, by what was said of them, by place or by likeness.

## Who asks

Send »Authorization: Key …« with an API key of your application, or »Authorization: Bearer …« with an
access token of »POST /v2/token«. Everything that a call reads or writes is of the application that the
credential belongs to; what belongs to another is answered exactly like what does not exist. A key
without a scope that a call cannot do without is refused with 403 and code 11007; one that only a small part
of the answer needs leaves that part out.

## Addresses

Every path of an application also stands below »/v2/users/{user_id}/apps/{app_id}«. Slashes may be doubled
and may trail. In ids »/« is written »%%2F« and »?« is written »%%3F«.

## Requests

Bodies are JSON, whatever their content type says; no body is an empty object. »null« means that a member is
absent, and »[]« may stand for an empty object. Unknown members and query parameters are passed over.
At most %d inputs go into one call.

## Answers

Every answer carries »status«, with a code and a text; the schema »Status« lists all codes. Success is
10000, HTTP 200. Calls about several items answer with one status for each: 10010 with HTTP 207 when some
failed, 10020 with HTTP 400 when all did. Lists are never left out, not even of errors; other members that
would be empty are, unless a schema says otherwise. Times are UTC with six digits of a second.

Answers hold what is described here and nothing else. Other pages may call: »Access-Control-Allow-Origin« is
»*«, and OPTIONS is answered to anyone.

## Pages of lists

»page« counts from 1, »per_page« is %d unless given and %d at most. Past the end the list is empty.

## Languages

Names of public concepts come in %d languages: %s. The application's default holds unless a call says another. Only the general model speaks others than
English; with any other one, an application whose default is not English passes »en«.

## Copies

Edges, and pages that keep a copy of an application, answer the same calls without asking anybody. What is written there is durable there
and on its way to the application's origin: an answer to a write carries »X-Sightline-Durability«, »local« at a copy and »origin« else. What
still waits, and what came to another end than was meant, a copy tells itself: see *Copies*.

## Calls left

Answers to calls that are counted against an account carry »X-Sightline-Calls-Left« where the account has a limit.
`, limits["maxInputs"], limits["defaultPerPage"], limits["maxPerPage"], len(languages), strings.Join(languages, ", ")))
}
