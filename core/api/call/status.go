package call

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/predict/raster/jpg"
	"github.com/sightline-dev/sightline/core/search"
)

// Errors of a whole call.
var (
	// ErrPath is returned for an unknown path or id.
	ErrPath = errors.New("no such resource")
	// ErrMethod is returned for a path that exists with other methods only.
	ErrMethod = errors.New("method not allowed")
	// ErrPage is returned for invalid page numbers.
	ErrPage = errors.New("invalid page")
	// ErrShow is returned for an unknown word of show.
	ErrShow = errors.New("unknown word of show")
	// ErrAnswer is returned for an answer that would exceed the maximum size.
	ErrAnswer = errors.New("the answer is too large")
	// ErrPredict is returned for a predict call without inputs or with too many.
	ErrPredict = errors.New("malformed predict request")
	// ErrModelArgument is returned for an output_config that the model cannot follow.
	ErrModelArgument = errors.New("the model does not support this")
	// ErrModelQuery is returned for a malformed model search.
	ErrModelQuery = errors.New("malformed model query")
	// ErrConcept is returned for concepts that cannot be created or changed.
	ErrConcept = errors.New("invalid concept")
	// ErrIDTaken is returned for a new model whose id another model has.
	ErrIDTaken = errors.New("the ID already exists")
	// ErrModelPermission is returned for a change to a public model.
	ErrModelPermission = errors.New("the model cannot be changed")
	// ErrUntrained is returned for outputs of a model, or of a version, that is not trained.
	ErrUntrained = errors.New("the model is not trained")
	// ErrQueued is returned for outputs of a model, or of a version, that is being trained.
	ErrQueued = errors.New("the model is being trained")
	// ErrWorkflow is returned for a workflow that cannot be created or run.
	ErrWorkflow = errors.New("malformed workflow")
	// ErrWorkflowTaken is returned for a new workflow whose id another workflow has.
	ErrWorkflowTaken = errors.New("the workflow already exists")
	// ErrConceptQuery is returned for a malformed concept search.
	ErrConceptQuery = errors.New("malformed concept query")
	// ErrBusy is returned by a host that accepts no more work at present.
	ErrBusy = errors.New("server is busy; try again")
	// ErrTimeout is returned by a host for a call that took too long.
	ErrTimeout = errors.New("the request timed out")
	// ErrInternal is returned by a host for an internal defect.
	ErrInternal = errors.New("internal error")
	// ErrNoResult is returned if a host answers fewer jobs than it got, or omits part of a result.
	ErrNoResult = errors.New("the host returned no result for a job")
	// ErrInputs is returned for a call that adds, changes or deletes inputs and lists none, or too many.
	ErrInputs = errors.New("malformed inputs request")
	// ErrAction is returned for a PATCH with an unknown action.
	ErrAction = errors.New("unknown action")
	// ErrFeedback is returned for feedback without content.
	ErrFeedback = errors.New("malformed feedback")
	// ErrSync is returned for an invalid request of the sync protocol.
	ErrSync = errors.New("malformed sync request")
	// ErrOptions is returned by New for invalid settings.
	ErrOptions = errors.New("invalid options")
)

// Errors of one input in a call.
var (
	// ErrInput is returned for an input without a picture.
	ErrInput = errors.New("malformed input")
	// ErrDuplicate is returned for an input whose id or URL another input of the application has.
	ErrDuplicate = errors.New("duplicate input")
	// ErrNoInput is returned for an item of a call that names a missing input.
	ErrNoInput = errors.New("no such input")
	// ErrVideoInput is returned for a video that a call wants to store as an input.
	ErrVideoInput = errors.New("videos can be predicted, not stored yet")
	// ErrURL is returned for a URL that cannot address a picture.
	ErrURL = errors.New("not an http or https URL")
	// ErrAnswered is the [ErrFetch] of a URL whose server has answered, from a public address. [DownloadError] makes it. A caller gets its text.
	ErrAnswered = fmt.Errorf("the server of the URL has answered: %w", ErrFetch)
	// ErrFetch wraps every failure of a host to get the bytes of a URL. A caller gets only the text of ErrFetch, so that answers reveal
	// nothing about internal networks.
	ErrFetch = errors.New("could not download the picture: the URL must be public, respond in time and return at most 20 MB (camera raw: 64 MB)")
)

// Status is the form of an error, or of a success, in an answer.
type Status struct {
	err         error // compared with errors.Is; the first matching row wins
	HTTP        int   // status of the whole call; an input's error fails the call if it is 500 or more
	Code        int
	Description string
}

// Statuses of successes, and of failures without an error of this package.
var (
	StatusOk             = Status{HTTP: 200, Code: 10000, Description: "Ok"}
	StatusMixed          = Status{HTTP: 207, Code: 10010, Description: "Mixed Success"}
	StatusFailure        = Status{HTTP: 400, Code: 10020, Description: "Failure"}
	StatusTrained        = Status{Code: catalog.VersionTrained, Description: "Model trained successfully"}
	StatusTrainingFailed = Status{Code: 21115, Description: "Model training had an unknown error."}

	StatusModified = Status{Code: 30200, Description: "Input image modification success"}
)

// stored are the statuses of stored inputs and model versions.
var stored = append([]Status{
	{Code: catalog.InputReady, Description: "Download complete"},
	{Code: catalog.InputPending, Description: "Download pending"},
	StatusTrained,
	{Code: 21101, Description: "Model is training"},
	{Code: 21110, Description: "Model training had no data."},
	{Code: 21111, Description: "Model training had no positive examples."},
	{Code: 21112, Description: "Model training was one of several but with a single class."},
	StatusTrainingFailed,
}, statuses...)

// StatusOfCode returns the status of a stored input or model version. The status of a later program's code has no description.
func StatusOfCode(code int) Status {
	for i := range stored {
		if stored[i].Code == code {
			return stored[i]
		}
	}
	return Status{Code: code}
}

// IsFailedDownload reports whether code is the status of an input whose picture could not be downloaded or read.
func IsFailedDownload(code int) bool {
	return code != catalog.InputReady && code != catalog.InputPending
}

// statuses are the wire codes of the errors of core. An error without a row is an internal error; status_test.go lists those.
var statuses = []Status{
	{auth.ErrNoCredentials, 401, 11102, "Invalid request"},
	{auth.ErrKeyUnknown, 401, 11009, "API key not found"},
	{auth.ErrToken, 401, 11001, "Invalid authentication token"},
	{auth.ErrExpired, 401, 11001, "Invalid authentication token"},
	{auth.ErrSession, 401, 11001, "Invalid authentication token"},
	{auth.ErrClient, 401, 11002, "Invalid credentials"},
	{auth.ErrLogin, 401, 11002, "Invalid credentials"},
	{auth.ErrQuota, 402, 11006, "Account limits exceeded"},
	{auth.ErrInsufficient, 403, 11007, "API key has insufficient scopes"},
	{auth.ErrRate, 429, 11005, "Too Many Requests"},
	{ErrPath, 404, 11101, "Resource does not exist"},
	{catalog.ErrNotFound, 404, 11101, "Resource does not exist"},
	{ErrMethod, 405, 11103, "Method not allowed"},
	{jsonio.ErrTooLong, 413, 40033, "Request too large"},
	{jsonio.ErrSyntax, 400, 11100, "Bad request format"},
	{jsonio.ErrDuplicate, 400, 11100, "Bad request format"},
	{jsonio.ErrUTF8, 400, 11100, "Bad request format"},
	{jsonio.ErrTooDeep, 400, 11100, "Bad request format"},
	{jsonio.ErrTooMany, 400, 11100, "Bad request format"},
	{ErrPage, 400, 11102, "Invalid request"},
	{ErrShow, 400, 11102, "Invalid request"},
	{ErrAnswer, 400, 11102, "Invalid request"},
	{ErrWhichApp, 400, 11102, "Invalid request"},
	{ErrSync, 400, 11102, "Invalid request"},
	{ErrAccountRequest, 400, 11102, "Invalid request"},
	{ErrPredict, 400, 40001, "Invalid request"},
	{ErrInputs, 400, 39999, "Invalid input request"},
	{ErrAction, 400, 11102, "Invalid request"},
	{ErrFeedback, 400, 40001, "Invalid request"},
	{search.ErrQuery, 400, 40002, "Invalid search request"},
	{ErrModelArgument, 400, 21202, "Invalid model argument"},
	{ErrModelQuery, 400, 21203, "Invalid model request"},
	{ErrModelPermission, 403, 21201, "Model permission denied"},
	{ErrIDTaken, 400, 40010, "Duplicate ID"},
	{ErrUntrained, 400, 21102, "Model not yet trained"},
	{ErrQueued, 400, 21103, "Custom model is in queue for training, waiting on inputs to process."},
	{ErrConcept, 400, 40003, "Invalid request"},
	{ErrWorkflow, 400, 22104, "Workflow argument invalid"},
	{ErrWorkflowTaken, 400, 22100, "Workflow already exists"},
	{ErrConceptQuery, 400, 40003, "Invalid request"},
	{lang.ErrUnknown, 400, 21202, "Invalid model argument"},
	{lang.ErrUnsupported, 400, 21202, "Invalid model argument"},
	{ErrBusy, 503, 40030, "Service busy"},
	{kv.ErrFollows, 503, 40030, "Service busy"},
	{blob.ErrUnavailable, 503, 40030, "Service busy"}, // before the timeout that may be its cause
	{kv.ErrFull, 507, 39998, "Writes disabled"},
	{auth.ErrWritesSuspended, 507, 39998, "Writes disabled"},
	{auth.ErrKeysUnverified, 503, 40030, "Service busy"},
	{ErrTimeout, 504, 40032, "Request timed out"},
	{context.DeadlineExceeded, 504, 40032, "Request timed out"},
	{context.Canceled, 504, 40032, "Request timed out"},

	{ErrInput, 400, 30104, "Input invalid argument"},
	{ErrVideoInput, 400, 31101, "Input video format unsupported"},
	{ErrDuplicate, 400, 30100, "Input image duplicate"},
	{ErrNoInput, 404, 30102, "Input does not exist"},
	{jsonio.ErrType, 400, 30104, "Input invalid argument"},
	{jsonio.ErrNumber, 400, 30104, "Input invalid argument"},
	{jsonio.ErrBase64, 400, 30104, "Input invalid argument"},
	{ErrURL, 400, 30106, "Input image URL invalid"},
	{ErrAnswered, 400, 30002, "Download failed; check URL"},
	{ErrFetch, 400, 30002, "Download failed; check URL"},
	{raster.ErrUnsupported, 400, 30101, "Input image format unsupported"},
	{raster.ErrTooLarge, 400, 30105, "Input image too large"},
	{raster.ErrCorrupt, 400, 30300, "Input image decoding failed"},
	{raster.ErrExpired, 400, 30300, "Input image decoding failed"},
	{jpg.ErrUnsupported, 400, 30101, "Input image format unsupported"},
	{jpg.ErrTooLarge, 400, 30105, "Input image too large"},
	{jpg.ErrTooManyScans, 400, 30105, "Input image too large"},
	{jpg.ErrCorrupt, 400, 30300, "Input image decoding failed"},
	{jpg.ErrExpired, 400, 30300, "Input image decoding failed"},
	{blob.ErrTooLarge, 400, 30105, "Input image too large"},

	statusInternal,
	{partition.ErrOutbox, 507, 39998, "Writes disabled"},
}

// Statuses returns the statuses that an answer may have, for documentation and tests.
func Statuses() []Status { return append([]Status{StatusOk, StatusMixed, StatusFailure}, statuses...) }

var statusInternal = Status{ErrInternal, 500, 99009, "Internal error"}

// StatusOf returns the status of an error.
func StatusOf(err error) Status {
	for _, s := range statuses {
		if errors.Is(err, s.err) {
			return s
		}
	}
	return statusInternal
}

// fault is an error whose text for the caller differs.
type fault struct {
	err     error
	details string
}

func (f *fault) Error() string { return f.details }

func (f *fault) Unwrap() error { return f.err }

// OfVideo returns the status and the details of an input with a video, where an input with a picture has s and details.
func (s Status) OfVideo(details string) (Status, string) {
	if s.Code/1000 == 30 {
		s.Code += 1000
		s.Description = strings.Replace(s.Description, "image", "video", 1)
	}
	if s.err == ErrFetch {
		details = fetchVideo
	}
	return s, details
}

// fetchVideo is the text of ErrFetch for a video.
const fetchVideo = "could not download the video: the URL must be public and respond in time"

// DownloadError returns the error of a download after a public address has answered. reason ends a sentence about the file.
func DownloadError(reason string) error {
	return Refusef(ErrAnswered, "could not download the file: %s", reason)
}

// DetailsOf returns the text of an error for the caller. It is empty for internal errors, the same for every failed fetch without
// [ErrAnswered], for every store of pictures that does not answer, and for every timeout. Other errors keep their text.
func DetailsOf(err error, s Status) string {
	switch s.err {
	case ErrFetch, blob.ErrUnavailable: // the cause has addresses of internal networks
		return s.err.Error()
	case context.DeadlineExceeded, context.Canceled:
		return ErrTimeout.Error()
	}
	if s.Code == statusInternal.Code {
		return ""
	}
	return err.Error()
}

// MethodError is the [ErrMethod] of a path that answers the methods Allowed. It is the details of the answer, which has the header Allow.
type MethodError struct{ Allowed []string }

func (e *MethodError) Error() string {
	return "Allowed methods: " + strings.Join(e.Allowed, ", ") + "."
}

// Unwrap returns ErrMethod.
func (e *MethodError) Unwrap() error { return ErrMethod }

// allow returns the header Allow. Hosts answer HEAD where they answer GET.
func (e *MethodError) allow() string {
	return strings.Replace(strings.Join(e.Allowed, ", "), "GET", "GET, HEAD", 1)
}

// NoPath is the error for missing things, and for things of another application.
var NoPath = Refusef(ErrPath, "Check the url of your request.")

// UnknownIDError returns the error for an id without a record. param is the path parameter that has the id, such as "model_id".
func UnknownIDError(param, id string) error {
	return Refusef(ErrPath, "%s '%s' not found. Check the url of your request.", param, id)
}

// ReplaceNotFound returns err, or replacement if err is catalog.ErrNotFound.
func ReplaceNotFound(err, replacement error) error {
	if errors.Is(err, catalog.ErrNotFound) {
		return replacement
	}
	return err
}
