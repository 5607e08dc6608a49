package describe

import (
	"fmt"
	"strings"
)

// Code is one of the codes that a status can have.
type Code struct {
	Number int
	Text   string // status.description
	HTTP   int    // of a call that ends with it; 0: it stands in items and versions alone
	Note   string
}

// codes are those of core/api, which a test compares with its source.
var codes = []Code{
	{10000, "Ok", 200, "Done."},
	{10010, "Mixed Success", 207, "Some items failed: each has its own status."},
	{10020, "Failure", 400, "All items failed: each has its own status."},

	{11001, "Invalid authentication token", 401, "The access token or session is not valid; details `expired token`: get a new one."},
	{11002, "Invalid credentials", 401, "Wrong client id and secret, or e-mail address and password."},
	{11005, "Too Many Requests", 429, "Ask again after the seconds in `Retry-After`."},
	{11006, "Account limits exceeded", 402, "The account has made all the calls that it may."},
	{11007, "API key has insufficient scopes", 403, "details names every scope that is missing."},
	{11008, "Invalid API key or Invalid API key/application pair", 401, "The key is not 32 hexadecimal digits."},
	{11009, "API key not found", 401, "No such key, or it was deleted."},
	{11100, "Bad request format", 400, "The body is no JSON object, or is nested too deep."},
	{11101, "Resource does not exist", 404, "Nothing is at this path or has this id."},
	{11102, "Invalid request", 400, "A paging number or an action is none; with HTTP 401 the credential is missing."},
	{11103, "Method not allowed", 405, "details lists the path's methods."},

	{21100, "Model trained successfully", 0, "The version predicts."},
	{21101, "Model is training", 0, ""},
	{21102, "Model not yet trained", 400, "Of a version: it waits to be trained. Of a predict call: there is none that is."},
	{21103, "Custom model is in queue for training, waiting on inputs to process.", 400, "Ask again once the version is at 21100."},
	{21110, "Model training had no data.", 0, ""},
	{21111, "Model training had no positive examples.", 0, ""},
	{21112, "Model training was one of several but with a single class.", 0, "Exclusive concepts need at least two."},
	{21115, "Model training had an unknown error.", 0, ""},
	{21201, "Model permission denied", 403, "Public models cannot be changed."},
	{21202, "Invalid model argument", 400, "The model cannot follow its output_config; other languages than English are the general model's alone."},
	{21203, "Invalid model request", 400, ""},
	{21300, "Model was successfully evaluated.", 0, "Of metrics."},
	{21302, "Model has not yet been evaluated.", 0, "Of metrics."},
	{21303, "Model is queued for evaluation.", 0, "Of metrics."},
	{22100, "Workflow already exists", 400, ""},
	{22104, "Workflow argument invalid", 400, ""},

	{30000, "Download complete", 0, "The input has been analysed."},
	{30001, "Download pending", 0, "The input's picture is fetched and analysed in the background."},
	{30002, "Download failed; check URL", 400, ""},
	{30100, "Input image duplicate", 400, "The URL or the id is in the application already."},
	{30101, "Input image format unsupported", 400, "JPEG, PNG, TIFF, BMP, WebP and GIF are read."},
	{30102, "Input does not exist", 404, ""},
	{30104, "Input invalid argument", 400, ""},
	{30105, "Input image too large", 400, ""},
	{30106, "Input image URL invalid", 400, ""},
	{30200, "Input image modification success", 0, ""},
	{30300, "Input image decoding failed", 400, ""},

	{39998, "Writes disabled", 507, "The disk is full."},
	{39999, "Invalid input request", 400, ""},
	{40001, "Invalid request", 400, "Of predictions and feedback."},
	{40002, "Invalid search request", 400, ""},
	{40003, "Invalid request", 400, "Of concepts."},
	{40010, "Duplicate ID", 400, ""},
	{40030, "Service busy", 503, "Ask again after the seconds in `Retry-After`."},
	{40032, "Request timed out", 504, ""},
	{40033, "Request too large", 413, ""},
	{99009, "Internal error", 500, ""},
}

// statusSchema is Status, its description the table of codes.
func statusSchema() object {
	var b strings.Builder
	b.WriteString("What became of a call, an item of it, a version or an evaluation.\n\n" +
		"| code | description | HTTP | |\n| --- | --- | --- | --- |\n")
	numbers := make([]int, len(codes))
	for i, c := range codes {
		http := "item"
		if c.HTTP > 0 {
			http = fmt.Sprint(c.HTTP)
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", c.Number, c.Text, http, c.Note)
		numbers[i] = c.Number
	}
	return closed(b.String(),
		always("code", object{{"type", "integer"}, {"enum", numbers}}, "10000 is success; other codes say why not."),
		always("description", text(), "Text for the code, in English."),
		maybe("details", text(), "What exactly is wrong. Never there with 10000."))
}

// failure is an error answer that operations share.
type failure struct {
	name string
	http int
	note string
}

var failures = []failure{
	{"BadRequest", 400, "The request is malformed; details says where."},
	{"Unauthorized", 401, "The credential is missing, malformed, unknown or expired."},
	{"PaymentRequired", 402, "The account has used up its calls: 100 until its e-mail address is verified, then those of its plan."},
	{"Forbidden", 403, "A scope is missing (11007), or what is to be changed is public."},
	{"NotFound", 404, "There is nothing at this path, or nothing of this application has this id."},
	{"MethodNotAllowed", 405, "The path takes other methods; details lists them."},
	{"TooLarge", 413, "The body is too large."},
	{"TooManyRequests", 429, "More calls than the rate limit allows: 10 a second, 100 at once, unless the server is set otherwise."},
	{"Internal", 500, "A fault of the server, which has logged it."},
	{"Busy", 503, "The server has as much to do as it takes on."},
	{"TimedOut", 504, "The call took too long."},
	{"Full", 507, "Nothing can be written, since the disk is full. Reads go on."},
}

// responses are the components of the error answers.
func responses() object {
	var all object
	for _, f := range failures {
		r := object{{"description", f.note}}
		if f.http == 402 {
			r = r.with(member{"headers", callsLeft})
		}
		if f.http == 429 || f.http == 503 {
			r = r.with(member{"headers", object{{"Retry-After", object{
				{"description", "Seconds to wait."}, {"schema", object{{"type", "integer"}, {"minimum", 1}}},
			}}}})
		}
		all = append(all, member{f.name, r.with(member{"content", object{{jsonType, object{{"schema", ref("Error")}}}}})})
	}
	return append(all, member{"Refused", refused})
}

const jsonType = "application/json"
