package describe

import (
	"fmt"
	"strings"
)

// Code describes one of the codes that a status can have.
type Code struct {
	Number int
	Text   string // status.description
	HTTP   int    // HTTP status of an answer with the code; 0: only items, versions and evaluations have the code
	Note   string
}

// Codes returns the codes of core/api. The caller must not modify them.
func Codes() []Code { return codes }

// codes holds the codes of core/api. TestCodes compares them with the source of core/api.
var codes = []Code{
	{10000, "Ok", 200, "Success."},
	{10010, "Mixed Success", 207, "Some items failed. Each item has its own status."},
	{10020, "Failure", 400, "All items failed. Each item has its own status."},

	{11001, "Invalid authentication token", 401, "The access token or session token is invalid. If details is `expired token`, get a new one."},
	{11002, "Invalid credentials", 401, "The client ID and secret, or the email and password, are wrong."},
	{11005, "Too Many Requests", 429, "Retry after the number of seconds in `Retry-After`."},
	{11006, "Account limits exceeded", 402, "The account has used all its calls. Item: the picture or record exceeds the storage limit of the account."},
	{11007, "API key has insufficient scopes", 403, "details lists the fewest scopes that the key needs in addition."},
	{11009, "API key not found", 401, "The key does not exist or was deleted."},
	{11100, "Bad request format", 400, "The body is not a JSON object, or is nested too deeply."},
	{11101, "Resource does not exist", 404, "Nothing exists at this path or with this ID."},
	{11102, "Invalid request", 400, "With HTTP 400, a page number or an action is invalid. With HTTP 401, the credential is missing or malformed."},
	{11103, "Method not allowed", 405, "details lists the methods that the path supports."},

	{21100, "Model trained successfully", 0, "The version is ready for predictions."},
	{21101, "Model is training", 0, ""},
	{21102, "Model not yet trained", 400, "The model or version has not been trained yet. Train it first."},
	{21103, "Custom model is in queue for training, waiting on inputs to process.", 400, "Retry when the version is at 21100."},
	{21110, "Model training had no data.", 0, ""},
	{21111, "Model training had no positive examples.", 0, ""},
	{21112, "Model training was one of several but with a single class.", 0, "At least two mutually exclusive concepts are needed."},
	{21115, "Model training had an unknown error.", 0, ""},
	{21201, "Model permission denied", 403, "Public models cannot be changed."},
	{
		21202, "Invalid model argument", 400,
		"The model does not support this output_config. Only the general model supports languages other than English.",
	},
	{21203, "Invalid model request", 400, ""},
	{21300, "Model was successfully evaluated.", 0, "Status of metrics."},
	{21302, "Model has not yet been evaluated.", 0, "Status of metrics."},
	{21303, "Model is queued for evaluation.", 0, "Status of metrics."},
	{22100, "Workflow already exists", 400, ""},
	{22104, "Workflow argument invalid", 400, ""},

	{30000, "Download complete", 0, "The input has been analysed. details names an earlier input with the same file and crop."},
	{30001, "Download pending", 0, "The picture is downloaded and analysed in the background."},
	{30002, "Download failed; check URL", 400, ""},
	{30100, "Input image duplicate", 400, "The application already has an input with this URL or ID."},
	{30101, "Input image format unsupported", 400, "Supported formats: JPEG, PNG, TIFF, BMP, WebP, GIF, HEIC, AVIF, JPEG XL and camera raw."},
	{30102, "Input does not exist", 404, ""},
	{30104, "Input invalid argument", 400, ""},
	{30105, "Input image too large", 400, ""},
	{30106, "Input image URL invalid", 400, ""},
	{30200, "Input image modification success", 0, ""},
	{30300, "Input image decoding failed", 400, ""},
	{31002, "Download failed; check URL", 400, "The video could not be downloaded."},
	{31101, "Input video format unsupported", 400, "Supported formats: MP4, MOV, 3GP, WebM, MKV, AVI, WMV, GIF and WebP. POST /inputs stores no videos."},
	{31104, "Input invalid argument", 400, "The item is a video."},
	{31105, "Input video too large", 400, "Too many bytes, frames, pixels or minutes, or it takes too long to decode; details shows the limit."},
	{31106, "Input video URL invalid", 400, ""},
	{31300, "Input video decoding failed", 400, "The video is damaged; details shows how much of it is sound."},

	{39998, "Writes disabled", 507, "The disk is full."},
	{39999, "Invalid input request", 400, ""},
	{40001, "Invalid request", 400, "For predictions and feedback."},
	{40002, "Invalid search request", 400, ""},
	{40003, "Invalid request", 400, "For concepts."},
	{40010, "Duplicate ID", 400, ""},
	{40030, "Service busy", 503, "Retry after the number of seconds in `Retry-After`."},
	{40032, "Request timed out", 504, ""},
	{40033, "Request too large", 413, ""},
	{99009, "Internal error", 500, ""},
}

// statusSchema returns the schema of Status. Its description contains a table of the codes.
func statusSchema() object {
	var b strings.Builder
	b.WriteString(
		"Status of a call, an item of a call, a model version or an evaluation. HTTP is the status of a response with the code; `item` marks " +
			"codes that only items, versions and evaluations have.\n\n" +
			"| code | description | HTTP | meaning |\n| --- | --- | --- | --- |\n")
	numbers := make([]int, len(codes))
	for i, c := range codes {
		http := "item"
		if c.HTTP > 0 {
			http = fmt.Sprint(c.HTTP)
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", c.Number, c.Text, http, c.Note)
		numbers[i] = c.Number
	}
	return closedRecord(b.String(),
		always("code", object{{"type", "integer"}, {"enum", numbers}}, "10000: success. The description of Status lists the other codes."),
		always("description", text(), "Text of the code, in English."),
		maybe("details", text(), "What exactly is wrong. Never present with 10000."))
}

// failure is an error answer that several operations can return.
type failure struct {
	name string
	http int
	note string
}

var failures = []failure{
	{"BadRequest", 400, "The request is malformed; details shows where."},
	{"Unauthorized", 401, "The credential is missing, malformed, unknown or expired."},
	{"PaymentRequired", 402, "The account has used all its calls: 100 until its email is verified, then the number of its plan."},
	{"Forbidden", 403, "A scope is missing (11007), or the call would change a public resource."},
	{"NotFound", 404, "Nothing exists at this path, or the application has nothing with this ID."},
	{"MethodNotAllowed", 405, "The path supports other methods; details lists them."},
	{"TooLarge", 413, "The body is too large."},
	{"TooManyRequests", 429, "The call exceeds the rate limit: 10 calls per second with bursts of 100, unless the operator changed it."},
	{"Internal", 500, "An internal error of the server. The server has logged it."},
	{"Busy", 503, "The server is busy and accepts no more work at the moment."},
	{"TimedOut", 504, "The call took too long."},
	{"Full", 507, "The disk is full, so nothing can be written. Reads still work."},
}

// responses returns the shared error answers of the document.
func responses() object {
	var all object
	for _, f := range failures {
		r := object{{"description", f.note}}
		if f.http == 402 {
			r = r.with(member{"headers", callsLeft})
		}
		if f.http == 429 || f.http == 503 {
			r = r.with(member{"headers", object{{"Retry-After", object{
				{"description", "Number of seconds to wait."}, {"schema", object{{"type", "integer"}, {"minimum", 1}}},
			}}}})
		}
		all = append(all, member{f.name, r.with(member{"content", object{{jsonType, object{{"schema", ref("Error")}}}}})})
	}
	return append(all, member{"Refused", refused})
}

const jsonType = "application/json"
