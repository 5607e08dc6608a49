package call

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/jsonio"
)

// Limits of [Options.MaxAnswer]. An answer of MinMaxAnswer bytes holds a page of 20 inputs with 64 KB of metadata each.
const (
	DefaultMaxAnswer = 16 << 20
	MinMaxAnswer     = 2 << 20
)

// errSending is the error while the host has no memory for another large answer.
var errSending = &fault{ErrBusy, "Too many bytes of answers are being sent: read them first, or try again."}

// writeBounded writes an answer within the limit and within the memory that the host reserves for it.
func (x *Call) writeBounded(w *jsonio.Writer, write func(*jsonio.Writer)) error {
	limit := x.maxAnswer()
	w.Bound(limit, x.reserveMemory)
	write(w)
	switch {
	case x.unreserved:
		return errSending
	case w.Len() > limit:
		return x.tooLarge(limit, write)
	}
	return nil
}

// maxAnswer returns the limit in bytes. The default applies to calls without a host and to a zero Host.
func (x *Call) maxAnswer() int {
	if x.Host == nil || x.Host.MaxAnswer == 0 {
		return DefaultMaxAnswer
	}
	return int(x.Host.MaxAnswer)
}

// reserveMemory requests memory from the host for the loaded records and a buffer of buffer bytes.
func (x *Call) reserveMemory(buffer int) bool {
	if x.memory != nil && !x.unreserved && !x.memory.Reserve(int64(x.Loaded+buffer)) {
		x.unreserved = true
	}
	return !x.unreserved
}

// tooLarge returns the error for an answer above the limit. Its text has the largest page size that fits.
func (x *Call) tooLarge(limit int, write func(*jsonio.Writer)) error {
	var w jsonio.Writer
	w.MeasureElements()
	write(&w)
	rows := w.Sizes()
	room := limit - w.Len()
	for _, size := range rows {
		room += size
	}
	text := fmt.Sprintf("The answer would have %d bytes, and the limit is %d", w.Len(), limit)
	switch n := fitting(rows, room); {
	case n == 0:
		text += "."
	case x.chosen:
		text += fmt.Sprintf(": the largest per_page that fits is %d.", n)
	default:
		text += fmt.Sprintf(": it has room for %d of these %d %s.", n, len(rows), x.Route.List)
	}
	return &fault{ErrAnswer, text}
}

// fitting returns the largest n for which any n consecutive rows fit in room. So a client that reads the rows again in pages of n
// gets every page, regardless of its first row.
func fitting(rows []int, room int) int {
	n, begin, size := len(rows), 0, 0
	for end := range rows {
		size += rows[end]
		for ; size > room; begin++ {
			n = min(n, end-begin)
			size -= rows[begin]
		}
	}
	return n
}

// withhold ends a call with err if the host has no room for its answer. A call that has written still succeeds: its answer then has
// only ids and statuses.
func (x *Call) withhold(s Status, err error, write func(*jsonio.Writer)) {
	x.unreserved, x.Loaded = false, 0
	if len(x.durability()) == 0 {
		x.Fail(err)
		return
	}
	if x.Brief {
		write = x.empty
	}
	x.Brief = true
	_ = x.Answer(s, "The call is done, and the answer shows less than usual. "+err.Error(), write)
}

// WithoutBody returns an answer to a call that has written, without the body that the host has no memory for.
func (x *Call) WithoutBody(res Response) Response {
	s := StatusOk
	if res.Status == StatusMixed.HTTP {
		s = StatusMixed
	}
	_ = x.Answer(s, "The call is done, and the answer is empty. "+errSending.details, x.empty)
	res.Body, res.ContentType = x.Exchange.response.Body, x.Exchange.response.ContentType
	return res
}

// Room returns an error if the host has no memory for the answer. It returns nil if the call has written, since the answer then shows ids.
func (x *Call) Room() error {
	if x.unreserved && len(x.durability()) == 0 {
		return errSending
	}
	return nil
}

// Reserve counts n bytes of a record that the answer shows. If there is no room for them, it returns false and counts nothing. Then
// the answer will be refused, and the caller need not keep the bytes.
func (x *Call) Reserve(n int) bool {
	if x.unreserved || x.Loaded+n > x.maxAnswer() {
		return false
	}
	x.Loaded += n
	return x.reserveMemory(0)
}

// ReservePart counts and returns a part of a record. If there is no room for it, it returns the same number of other bytes.
func (x *Call) ReservePart(part []byte) []byte {
	if len(part) == 0 || x.Reserve(len(part)) {
		return part
	}
	return x.Blank(len(part))
}

// Blank returns n bytes that replace others in an answer that will be refused.
func (x *Call) Blank(n int) []byte {
	for len(x.blanks) < n {
		x.blanks = append(x.blanks, '0')
	}
	return x.blanks[:n]
}
