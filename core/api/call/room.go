package call

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/jsonio"
)

// Limits of [Options.MaxAnswer]. The least holds a page of 20 inputs with 64 KB of metadata each.
const (
	DefaultMaxAnswer = 16 << 20
	MinMaxAnswer     = 2 << 20
)

// errSending is the answer while the host has no memory for another large one.
var errSending = &fault{ErrBusy, "Too many bytes of answers are being sent: read them first, or try again."}

// writeBounded writes an answer within the limit and within the memory that the host reserves for it.
func (x *Call) writeBounded(w *jsonio.Writer, write func(*jsonio.Writer)) error {
	most := x.maxAnswer()
	w.Bound(most, x.reserveMemory)
	write(w)
	switch {
	case x.unreserved:
		return errSending
	case w.Len() > most:
		return x.tooLarge(most, write)
	}
	return nil
}

// maxAnswer is the limit. Answers without a service, or of the zero one, are small.
func (x *Call) maxAnswer() int {
	if x.Host == nil || x.Host.MaxAnswer == 0 {
		return DefaultMaxAnswer
	}
	return int(x.Host.MaxAnswer)
}

// reserveMemory asks the host for the memory of the loaded records and of a buffer.
func (x *Call) reserveMemory(buffer int) bool {
	if x.memory != nil && !x.unreserved && !x.memory.Reserve(int64(x.Loaded+buffer)) {
		x.unreserved = true
	}
	return !x.unreserved
}

// tooLarge is the error for an answer above the limit. It names the largest page that fits.
func (x *Call) tooLarge(most int, write func(*jsonio.Writer)) error {
	var w jsonio.Writer
	w.Split()
	write(&w)
	rows := w.Sizes()
	room := most - w.Len()
	for _, size := range rows {
		room += size
	}
	text := fmt.Sprintf("The answer would have %d bytes, and the limit is %d", w.Len(), most)
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

// fitting returns the largest number n so that any n rows in a row fit in room. A client that reads the rows again in pages of n then
// gets each page, wherever it begins.
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

// withhold ends a call whose answer has no room, with err. A call that has written has succeeded all the same: its answer then has
// ids and statuses alone.
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

// Withheld is an answer to a call that has written, without the body that a host has no memory for.
func (x *Call) Withheld(res Response) Response {
	s := StatusOk
	if res.Status == StatusMixed.HTTP {
		s = StatusMixed
	}
	_ = x.Answer(s, "The call is done, and the answer is empty. "+errSending.details, x.empty)
	res.Body, res.ContentType = x.Exchange.response.Body, x.Exchange.response.ContentType
	return res
}

// Room returns an error if the host has no memory for the answer, unless the call has written: then the answer shows ids at least.
func (x *Call) Room() error {
	if x.unreserved && len(x.durability()) == 0 {
		return errSending
	}
	return nil
}

// Fits counts n bytes of a record that the answer shows. It returns false, and counts nothing, if there is no room for them: then
// the answer will be refused, and the bytes need not be kept.
func (x *Call) Fits(n int) bool {
	if x.unreserved || x.Loaded+n > x.maxAnswer() {
		return false
	}
	x.Loaded += n
	return x.reserveMemory(0)
}

// Weigh returns a part of a record, or as many other bytes if there is no room for it.
func (x *Call) Weigh(part []byte) []byte {
	if len(part) == 0 || x.Fits(len(part)) {
		return part
	}
	return x.Blank(len(part))
}

// Blank returns n bytes that take the place of others in an answer that will be refused.
func (x *Call) Blank(n int) []byte {
	for len(x.blanks) < n {
		x.blanks = append(x.blanks, '0')
	}
	return x.blanks[:n]
}
