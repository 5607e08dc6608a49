package synclink

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// maxRecord is the maximum size of the origin's answer with an app record, in bytes.
const maxRecord = 16 << 20

// AppRecord requests an application's record from the origin, and returns its sequence number and content. data is nil if the origin has
// nothing newer than the record since; 0: the replica has none. A store must have a record before an engine opens a replica of the
// application. AppRecord does not use o.Machine.
//
// Errors: the origin's *wire.Refusal or StatusError, wire.ErrFormat, and errors of the connection.
func (l *Link) AppRecord(ctx context.Context, app string, since uint64) (seq uint64, data []byte, err error) {
	query := url.Values{"app": {app}, "since": {strconv.FormatUint(since, 10)}}
	res, err := l.send(ctx, &replica.Ask{Method: "GET", Path: "/v2/sync/keys", Query: query.Encode(), Header: accept})
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	body, err := system.ReadAll(res.Body, maxRecord)
	switch {
	case err != nil:
		return 0, nil, err
	case res.StatusCode == http.StatusNoContent:
		return since, nil, nil
	case res.StatusCode != http.StatusOK:
		return 0, nil, refusalOf(res.StatusCode, res.Header.Get("Content-Type"), body)
	}
	r, err := wire.DecodeAppRecord(body)
	if err == nil && r.App != app {
		err = fmt.Errorf("the origin sent the record of application %q: %w", r.App, wire.ErrFormat)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("invalid answer of the origin: %w", err)
	}
	return r.Seq, r.Data, nil
}

// Join requests the record of an application of which the replica has none. Errors: ErrAddress and those of AppRecord.
func Join(ctx context.Context, o Options, app string) (seq uint64, data []byte, err error) {
	l, err := New(o)
	if err != nil {
		return 0, nil, err
	}
	defer l.Close()
	return l.AppRecord(ctx, app, 0)
}

// Close closes the connections of a link that does not run.
func (l *Link) Close() { l.client.CloseIdleConnections() }

// StatusError is the error for an answer that contains no *wire.Refusal. It is the answer's HTTP status.
type StatusError int

func (s StatusError) Error() string { return fmt.Sprintf("HTTP status %d", int(s)) }

// refusalOf returns the error of a refused request: the origin's *wire.Refusal, or a StatusError.
func refusalOf(status int, contentType string, body []byte) error {
	if r, err := wire.DecodeRefusal(body); err == nil && contentType == wire.ContentType && r.Status() == status {
		return &r
	}
	return StatusError(status)
}

// accept requests refusals in the format of package wire.
var accept = []api.Field{{Name: "Accept", Value: wire.ContentType}}
