package call

import (
	"net/url"
	"slices"
	"strings"
)

// Words of show. Each is a member of answers that the interface does not define. Some clients fail on members that they do not know, so
// an answer has such a member only if the request asks for it.
const (
	ShowDigest    = "digest"    // of a model version
	ShowProgress  = "progress"  // of a model version
	ShowSHA256    = "sha256"    // of an input
	ShowSightline = "sightline" // of the metrics of a model version
	ShowTaken     = "taken"     // of the data of an input
)

// ShowWords are the words of show, for documentation.
var ShowWords = []string{ShowDigest, ShowProgress, ShowSHA256, ShowSightline, ShowTaken}

// AsksFor reports whether the request asks for a member with a word of show.
func (x *Call) AsksFor(word string) bool { return slices.Contains(x.extras, word) }

// readShow reads the words of show: a list in the body, and lists with commas in the query.
func (x *Call) readShow() error {
	words, err := x.Body.Texts("show")
	if err != nil {
		return Refuse(ErrShow, err)
	}
	if strings.Contains(x.Query, "show") {
		values, _ := url.ParseQuery(x.Query) // malformed parameters are ignored, like unknown ones
		for _, list := range values["show"] {
			words = append(words, strings.FieldsFunc(list, func(r rune) bool { return r == ',' })...)
		}
	}
	for _, word := range words {
		i := slices.Index(ShowWords, word)
		if i < 0 {
			return Refusef(ErrShow, "show: unknown word %q; known words: %s.", word, strings.Join(ShowWords, ", "))
		}
		x.extras = append(x.extras, ShowWords[i])
	}
	return nil
}
