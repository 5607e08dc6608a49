package call

import (
	"fmt"
	"unicode/utf16"

	"github.com/sightline-dev/sightline/core/jsonio"
)

// HeaderNotice is the header with the notices of a successful call: a JSON list of objects with at, the place in the request, and text, a
// sentence. It is ASCII. Notices are not in the body, because clients compare the status of a success with the plain one.
const HeaderNotice = "X-Sightline-Notice"

// Limits of a header with notices.
const (
	maxNoticeBytes = 4 << 10
	moreNotices    = 64  // bytes for the notice about those left out
	maxNoticeWord  = 100 // characters of a text of the request in a notice
)

// notice is a sentence about a successful call.
type notice struct {
	at   string // place in the request: "per_page", "query.ands[0].input.data.concepts[0].name"
	text string
}

// Notify adds a notice to the answer: a text about the place at in the request. The answer of a failed call has none.
func (x *Call) Notify(at, text string) { x.notices = append(x.notices, notice{at, text}) }

// Excerpt returns the start of a text of the request for a notice.
func Excerpt(text string) string {
	n := 0
	for i := range text {
		if n++; n > maxNoticeWord {
			return text[:i] + "…"
		}
	}
	return text
}

// noticed returns the header with the notices, or none. The last notice replaces those that exceed the limit.
func (x *Call) noticed() []Field {
	if len(x.notices) == 0 {
		return nil
	}
	list := []byte{'['}
	left := 0
	for _, n := range x.notices {
		one := n.appendTo(nil)
		if left > 0 || len(list)+len(one)+moreNotices > maxNoticeBytes {
			left++
			continue
		}
		list = append(append(list, one...), ',')
	}
	if left > 0 {
		more := notice{text: fmt.Sprintf("%d more", left)}
		list = append(more.appendTo(list), ',')
	}
	list[len(list)-1] = ']'
	return []Field{{HeaderNotice, string(list)}}
}

// appendTo appends a notice as ASCII JSON.
func (n notice) appendTo(dst []byte) []byte {
	var w jsonio.Writer
	w.Object()
	w.Text("at", n.at)
	w.Text("text", n.text)
	w.End('}')
	for _, r := range string(w.Bytes()) {
		switch {
		case r < 0x7f:
			dst = append(dst, byte(r))
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			dst = fmt.Appendf(dst, `\u%04x\u%04x`, high, low)
		default:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		}
	}
	return dst
}
