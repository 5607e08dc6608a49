package replica

import (
	"encoding/binary"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/api"
)

// Times of a lane.
const (
	answerLimit = time.Minute      // an answer that is not a stream is given up after it
	quietLimit  = 45 * time.Second // likewise a stream that brought nothing: three keepalives
	firstPause  = 500 * time.Millisecond
	longPause   = time.Minute
	maxPause    = time.Hour // what an origin may ask for at most
)

// lane is one of the tasks that the machine does at the same time. It has at most one request in flight, and pauses separately after
// failures, so that a refused push delays no pull.
type lane struct {
	name  string
	id    uint64        // of the request under way; 0: none
	limit time.Duration // when it is given up
	since time.Duration // when it was asked
	next  time.Duration // nothing is asked before
	fails int           // in a row
	wrong string        // what failed last, for people; empty once something went forward after it

	status int         // of the answer that is coming in; 0: nothing of it has
	header []api.Field // likewise
	body   []byte      // of the answer, unless it is a stream
}

// idle reports whether the lane may ask at a moment.
func (l *lane) idle(at time.Duration) bool { return l.id == 0 && at >= l.next }

// endRequest ends the request.
func (l *lane) endRequest() {
	l.id, l.status, l.header = 0, 0, nil
	l.body = l.body[:0]
}

// succeeded notes that something went forward.
func (l *lane) succeeded() { l.fails, l.next, l.wrong = 0, 0, "" }

// pause returns the time that a lane waits after some failures in a row. It doubles from half a second to a minute. Up to half of it is
// subtracted at random, so that replicas that were disconnected together do not come back together.
func pause(fails int, random io.Reader) time.Duration {
	d := longPause
	if fails < 8 {
		d = min(firstPause<<max(fails-1, 0), longPause)
	}
	var b [8]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return d // a source of chance that fails costs the spread alone
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

// retryAfter is the wait that an answer asks for; 0: none.
func retryAfter(fields []api.Field) time.Duration {
	n, err := strconv.ParseUint(strings.TrimSpace(header(fields, "Retry-After")), 10, 32)
	if err != nil {
		return 0
	}
	return min(time.Duration(n)*time.Second, maxPause)
}
