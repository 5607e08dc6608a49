package wire

import "github.com/sightline-dev/sightline/core/log"

// Bytes that an operation takes at most beside its texts, as a rule.
const (
	headBytes  = 24
	labelBytes = 4
	bodyBytes  = 96
)

// Fit returns how many of the first entries to put into one block, so that its message is one
// frame: at most MaxOps, and at least one of any. A message that is longer all the same goes out
// in parts.
func Fit(entries []log.Entry) int {
	room := MaxBody - 4096
	var scratch []byte
	for i := range entries {
		if i == MaxOps {
			return i
		}
		o := &entries[i].Op
		size := headBytes + len(o.By) + len(o.Extra.Op)
		switch body := o.Body.(type) {
		case *log.InputCreate:
			size += bodyBytes + len(body.ID) + len(body.URL) + len(body.ContentType) + len(body.Meta) + labelsSize(body.Labels)
		case *log.InputLabels:
			size += bodyBytes + labelsSize(body.Labels)
		default:
			scratch = log.Encode(scratch[:0], o)
			size += len(scratch)
		}
		if room -= size + len(o.Extra.Body); room < 0 && i > 0 {
			return i
		}
	}
	return len(entries)
}

func labelsSize(labels []log.Label) int {
	size := labelBytes * len(labels)
	for i := range labels {
		size += len(labels[i].Concept)
	}
	return size
}
