package synclink

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// maxRefusal is the maximum size of a refusal, in bytes.
const maxRefusal = 64 << 10

// Join requests an application's record from the origin, and returns its sequence number and content. A store
// must have the record before an engine opens a replica of the application. Join does not use o.Machine.
//
// Errors: ErrAddress, the origin's *wire.Refusal or StatusError, wire.ErrFormat, and errors of the connection.
func Join(ctx context.Context, o Options, app string) (seq uint64, data []byte, err error) {
	l, err := New(o)
	if err != nil {
		return 0, nil, err
	}
	defer l.client.CloseIdleConnections()
	query := url.Values{"app": {app}, "p": {"0"}, "since": {"0"}, "register": {"0"}, "live": {"0"}}
	res, err := l.send(ctx, &replica.Ask{Method: "GET", Path: "/v2/sync/changes", Query: query.Encode(), Header: accept})
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != 200 {
		body, err := system.ReadAll(res.Body, maxRefusal)
		return 0, nil, errors.Join(RefusalOf(res.StatusCode, res.Header.Get("Content-Type"), body), err)
	}
	var in wire.Reader
	buf := make([]byte, pieceBytes)
	for {
		n, failed := res.Body.Read(buf)
		_, _ = in.Write(buf[:n]) // its error is always nil
		for {
			f, ok, err := in.Next()
			if err != nil {
				return 0, nil, fmt.Errorf("invalid answer of the origin: %w", err)
			}
			if !ok {
				break
			}
			if f.Type == wire.TypeRegister {
				r, err := wire.DecodeAppRecord(f.Body)
				if err == nil && r.App != app {
					err = fmt.Errorf("the origin sent the record of application %q: %w", r.App, wire.ErrFormat)
				}
				return r.Seq, r.Data, err
			}
		}
		if failed != nil {
			return 0, nil, fmt.Errorf("the origin returned nothing for application %s: %w", app, failed)
		}
	}
}

// StatusError is the error for an answer that contains no *wire.Refusal. It is the answer's HTTP status.
type StatusError int

func (s StatusError) Error() string { return fmt.Sprintf("HTTP status %d", int(s)) }

// RefusalOf returns the error of a refused request: the origin's *wire.Refusal, or a StatusError.
func RefusalOf(status int, contentType string, body []byte) error {
	if r, err := wire.DecodeRefusal(body); err == nil && contentType == wire.ContentType && r.Status() == status {
		return &r
	}
	return StatusError(status)
}

// accept requests refusals in the format of package wire.
var accept = []api.Field{{Name: "Accept", Value: wire.ContentType}}
