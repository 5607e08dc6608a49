package api

import (
	"fmt"
	"slices"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// Limits of [Options.MaxAnswer]. The least holds a page of 20 inputs with 64 KB of metadata each.
const (
	DefaultMaxAnswer = 16 << 20
	MinMaxAnswer     = 2 << 20
)

// errSending is the answer while the host has no memory for another large one.
var errSending = &fault{ErrBusy, "Too many bytes of answers are being sent: read them first, or try again."}

// bounded writes an answer within the limit and within the memory that the host reserves for it.
func (x *Call) bounded(w *jsonio.Writer, write func(*jsonio.Writer)) error {
	most := x.maxAnswer()
	w.Bound(most, x.reserved)
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
	if x.s == nil || x.s.o.MaxAnswer == 0 {
		return DefaultMaxAnswer
	}
	return int(x.s.o.MaxAnswer)
}

// reserved asks the host for the memory of the loaded records and of a buffer.
func (x *Call) reserved(buffer int) bool {
	if x.memory != nil && !x.unreserved && !x.memory.Reserve(int64(x.loaded+buffer)) {
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
		text += fmt.Sprintf(": it has room for %d of these %d %s.", n, len(rows), x.route.list)
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
func (x *Call) withhold(s status, err error, write func(*jsonio.Writer)) {
	x.unreserved, x.loaded = false, 0
	if len(x.durability()) == 0 {
		x.fail(err)
		return
	}
	if x.brief {
		write = x.empty
	}
	x.brief = true
	x.answer(s, "The call is done, and the answer shows less than usual. "+err.Error(), write)
}

// Withheld is res, the answer to a call that has written, without the body that a host has no memory for.
func Withheld(r *Request, res Response) Response {
	x := Call{s: &Service{}}
	x.route, _, _, _ = resolve(r.Method, r.Path)
	s := statusOk
	if res.Status == statusMixed.http {
		s = statusMixed
	}
	x.answer(s, "The call is done, and the answer is empty. "+errSending.details, x.empty)
	res.Body, res.ContentType = x.call.response.Body, x.call.response.ContentType
	return res
}

// labelBytes is less than a label takes in an answer, without its concept's id and name, and about what it takes in memory.
const labelBytes = 60

// loadInput reads an input that the answer lists. It does not read on for an answer that the host has no memory for, unless the call has
// written and shows the inputs' ids.
func loadInput(x *Call, v *partition.View, ord uint32) (catalog.Input, error) {
	if x.unreserved && len(x.durability()) == 0 {
		return catalog.Input{}, errSending
	}
	in, err := v.Input(ord)
	if err == nil {
		holdInput(x, &in)
		err = nameSameFile(x, v, &in)
	}
	return in, err
}

// holdInput counts what an input that the answer lists takes.
func holdInput(x *Call, in *catalog.Input) {
	if !x.shows(auth.ConceptsGet) {
		in.Labels = nil
	}
	labels := 0
	for i := range in.Labels {
		labels += labelBytes + len(in.Labels[i].Concept)
	}
	meta := in.Meta.JSON()
	if x.weighs(len(meta) + labels) {
		if len(in.Meta) > 1 {
			in.Meta = catalog.Meta{{JSON: meta}}
		}
		return
	}
	in.Labels, in.Meta = nil, catalog.Meta{{JSON: x.blank(len(meta) + labels)}}
}

// weighs counts n bytes of a record that the answer shows. It returns false, and counts nothing, if there is no room for them: then
// the answer will be refused, and the bytes need not be kept.
func (x *Call) weighs(n int) bool {
	if x.unreserved || x.loaded+n > x.maxAnswer() {
		return false
	}
	x.loaded += n
	return x.reserved(0)
}

// weigh returns a part of a record, or as many other bytes if there is no room for it.
func (x *Call) weigh(part []byte) []byte {
	if len(part) == 0 || x.weighs(len(part)) {
		return part
	}
	return x.blank(len(part))
}

// blank returns n bytes that take the place of others in an answer that will be refused.
func (x *Call) blank(n int) []byte {
	for len(x.blanks) < n {
		x.blanks = append(x.blanks, '0')
	}
	return x.blanks[:n]
}

// weighConfig returns the settings of an operation, counted.
func weighConfig(x *Call, list []log.Setting) []log.Setting {
	list = slices.Clone(list)
	for i := range list {
		list[i].JSON = x.weigh(list[i].JSON)
	}
	return list
}

// weighOp counts an operation that the answer shows.
func weighOp(x *Call, op *log.Op) {
	switch b := op.Body.(type) {
	case *log.InputCreate:
		shown := *b
		shown.Meta = x.weigh(b.Meta)
		op.Body = &shown
	case *log.InputMeta:
		shown := *b
		shown.Writes = slices.Clone(b.Writes)
		for i := range shown.Writes {
			shown.Writes[i].JSON = x.weigh(shown.Writes[i].JSON)
		}
		op.Body = &shown
	case *log.ModelCreate:
		shown := *b
		shown.Config = weighConfig(x, b.Config)
		op.Body = &shown
	case *log.ModelPatch:
		shown := *b
		shown.Config = weighConfig(x, b.Config)
		op.Body = &shown
	case *log.Feedback:
		shown := *b
		shown.JSON = x.weigh(b.JSON)
		op.Body = &shown
	}
}
