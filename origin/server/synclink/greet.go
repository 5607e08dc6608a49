package synclink

import (
	"context"
	"errors"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// maxOffered is the maximum size of the origin's answer to a session, in bytes.
const maxOffered = 1 << 20

// BeginSession begins a session with the origin without using a replica's machine, and returns the origin's reply. A running machine does
// not notice it. BeginSession does not use o.Machine.
//
// Errors: ErrAddress, the origin's *wire.Refusal or StatusError, wire.ErrFormat, and errors of the connection.
func BeginSession(ctx context.Context, o Options, s *wire.Session) (out wire.SessionReply, err error) {
	l, err := New(o)
	if err != nil {
		return out, err
	}
	defer l.client.CloseIdleConnections()
	res, err := l.send(ctx, &replica.Ask{Method: "POST", Path: "/v2/sync/session", Body: s.Encode(), Header: greeting})
	if err != nil {
		return out, err
	}
	defer res.Body.Close()
	body, err := system.ReadAll(res.Body, maxOffered)
	if res.StatusCode != 200 {
		return out, errors.Join(refusalOf(res.StatusCode, res.Header.Get("Content-Type"), body), err)
	}
	if err != nil {
		return out, err
	}
	return wire.DecodeSessionReply(body)
}

var greeting = []api.Field{{Name: "Accept", Value: wire.ContentType}, {Name: "Content-Type", Value: wire.ContentType}}
