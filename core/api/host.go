package api

import (
	"strings"

	"github.com/sightline-dev/sightline/core/api/call"
)

// The types of package call that hosts use. Hosts import only package api, since many of them have a function or a type named call.
type (
	Request        = call.Request
	Response       = call.Response
	Field          = call.Field
	AuditEvent     = call.AuditEvent
	Memory         = call.Memory
	Exchange       = call.Exchange
	Job            = call.Job
	Result         = call.Result
	Video          = call.Video
	Frame          = call.Frame
	Options        = call.Options
	Models         = call.Models
	Hosting        = call.Hosting
	PublicPictures = call.PublicPictures
	Applications   = call.Applications
	Application    = call.Application
	NewApp         = call.NewApp
	NewKey         = call.NewKey
	Tokens         = call.Tokens
	Accounts       = call.Accounts
	Calls          = call.Calls
	CountedCall    = call.CountedCall
	Storage        = call.Storage
	StorageLimits  = call.StorageLimits
	MethodError    = call.MethodError
	SyncStatus     = call.SyncStatus
	Device         = call.Device
)

// Limits and names that hosts use.
const (
	HostedPath       = call.HostedPath
	ThumbnailPath    = call.ThumbnailPath
	MainAppID        = call.MainAppID
	NullAppID        = call.NullAppID
	MinMaxAnswer     = call.MinMaxAnswer
	DefaultMaxAnswer = call.DefaultMaxAnswer
	MaxApps          = call.MaxApps
	MaxKeys          = call.MaxKeys
	MinSampleMS      = call.MinSampleMS
	MaxSampleMS      = call.MaxSampleMS
	ExposedHeaders   = call.ExposedHeaders
	HeaderNotice     = call.HeaderNotice
	HeaderApplied    = call.HeaderApplied
)

// Errors that hosts answer with or check for.
var (
	ErrInternal       = call.ErrInternal
	ErrBusy           = call.ErrBusy
	ErrTimeout        = call.ErrTimeout
	ErrFetch          = call.ErrFetch
	ErrAnswered       = call.ErrAnswered
	ErrPath           = call.ErrPath
	ErrMethod         = call.ErrMethod
	ErrSync           = call.ErrSync
	ErrOptions        = call.ErrOptions
	ErrAccountRequest = call.ErrAccountRequest
)

// MatchesTag reports whether known, a value of If-None-Match, contains an entity tag. [call.MatchesTag] describes the form.
func MatchesTag(known, tag string) bool { return call.MatchesTag(known, tag) }

// AcceptsEncoding reports whether accepted, a value of Accept-Encoding, names a content coding with a weight above 0.
func AcceptsEncoding(accepted, coding string) bool {
	for one := range strings.SplitSeq(accepted, ",") {
		name, weight, _ := strings.Cut(one, ";")
		if strings.EqualFold(strings.TrimSpace(name), coding) {
			q, isWeight := strings.CutPrefix(strings.ReplaceAll(strings.ToLower(weight), " ", ""), "q=")
			return !isWeight || strings.Trim(q, "0.") != ""
		}
	}
	return false
}

// DownloadError returns an error of a download. [call.DownloadError] describes it.
func DownloadError(reason string) error { return call.DownloadError(reason) }

// RespondWith returns a completed exchange with a response from elsewhere, such as [Service.Refuse].
func RespondWith(r Response) *Exchange { return call.RespondWith(r) }

// NewExchange returns an exchange that continues elsewhere, such as in a guest. [call.NewExchange] describes jobs and resume.
func NewExchange(jobs []Job, resume func([]Result) (next []Job, r Response, done bool)) *Exchange {
	return call.NewExchange(jobs, resume)
}
