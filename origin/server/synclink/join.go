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

// maxRefusal is the maximum size of a refusal that is read.
const maxRefusal = 64 << 10

// Join asks the origin for an application's register: what a store must hold before an
// engine opens the application as a copy. It needs no machine.
//
// Errors: a *wire.Refusal or *StatusError of the origin's, and those of the connection.
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
		_, _ = in.Write(buf[:n]) // it has no error
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

// StatusError is an answer with only an HTTP status.
type StatusError int

func (s StatusError) Error() string { return fmt.Sprintf("HTTP status %d", int(s)) }

// RefusalOf returns the error of a refused request: the origin's *wire.Refusal, or a StatusError.
func RefusalOf(status int, contentType string, body []byte) error {
	if r, err := wire.DecodeRefusal(body); err == nil && contentType == wire.ContentType && r.Status() == status {
		return &r
	}
	return StatusError(status)
}

// accept says that refusals are wanted as messages.
var accept = []api.Field{{Name: "Accept", Value: wire.ContentType}}
