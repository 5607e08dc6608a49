package replica

import (
	"encoding/binary"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/api"
)

// Timeouts and pauses of a lane.
const (
	answerLimit = time.Minute      // timeout of an answer that is not a stream
	quietLimit  = 45 * time.Second // timeout of a stream without data: three keepalives
	firstPause  = 500 * time.Millisecond
	longPause   = time.Minute
	maxPause    = time.Hour // maximum pause that an origin can ask for
)

// lane is one of the tasks that the machine does at the same time. It has at most one request in flight, and pauses separately after
// failures, so that a refused push delays no pull.
type lane struct {
	name  string
	id    uint64        // ID of the current request; 0: none
	limit time.Duration // time when the request is cancelled
	since time.Duration // time when the request was made
	next  time.Duration // earliest time of the next request
	fails int           // consecutive failures
	wrong string        // last failure, for people; empty after a success
	over  string        // name of the origin's limit in the last failure; empty: none

	status int         // status of the answer in progress; 0: nothing arrived
	header []api.Field // header of the answer in progress
	body   []byte      // body so far, unless the answer is a stream
}

// idle reports whether the lane may make a request at time at.
func (l *lane) idle(at time.Duration) bool { return l.id == 0 && at >= l.next }

// endRequest forgets the current request and its answer.
func (l *lane) endRequest() {
	l.id, l.status, l.header = 0, 0, nil
	l.body = l.body[:0]
}

// succeeded resets the failures and the pause after progress.
func (l *lane) succeeded() { l.fails, l.next, l.wrong, l.over = 0, 0, "", "" }

// pause returns the time that a lane waits after some failures in a row. It doubles from half a second to a minute. Up to half of it is
// subtracted at random, so that replicas that were disconnected together do not come back together.
func pause(fails int, random io.Reader) time.Duration {
	d := longPause
	if fails < 8 {
		d = min(firstPause<<max(fails-1, 0), longPause)
	}
	var b [8]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return d // without random numbers only the jitter is lost
	}
	return d - time.Duration(binary.LittleEndian.Uint64(b[:])%uint64(d/2+1))
}

// header returns the first value of a header.
func header(fields []api.Field, name string) string {
	for _, f := range fields {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// retryAfter returns the pause in the header Retry-After; 0: none.
func retryAfter(fields []api.Field) time.Duration {
	n, err := strconv.ParseUint(strings.TrimSpace(header(fields, "Retry-After")), 10, 32)
	if err != nil {
		return 0
	}
	return min(time.Duration(n)*time.Second, maxPause)
}
