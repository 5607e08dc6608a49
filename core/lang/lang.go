// Package lang has the 23 languages of the interface and the name of every public concept in each of them.
//
//	codes      ar bn da de en … zh zh-TW            [Codes], [Valid], [Choose]
//	names      concept × language → name            [Table.Name]
//	order      names of one language, folded, sorted
//	           ananas │ apfel │ … │ hund │ hundehütte │ … │ zwiebel
//	                            └── "hund*" is this range ──┘
//
// A search ignores case, accents and width in every script; see [Fold]. It is a binary search and a walk over the range, without a pattern
// language or regular expressions. The names come with the bundle of the general model; this package contains no names.
//
// It does not translate, stem or segment: "Hunde" does not find "Hund".
package lang

import (
	"errors"
	"fmt"
	"slices"
)

// English is the language that every model supports.
const English = "en"

// ErrUnknown is returned for a code that is not one of the 23.
var ErrUnknown = errors.New("unknown language")

// ErrUnsupported is returned if a model does not support the language of the request. A request in English succeeds.
var ErrUnsupported = errors.New("only the general model supports languages other than English; pass \"en\" as the language")

var codes = []string{
	"ar", "bn", "da", "de", "en", "es", "fi", "fr", "hi", "hu", "it", "ja",
	"ko", "nl", "no", "pa", "pl", "pt", "ru", "sv", "tr", "zh", "zh-TW",
}

// Codes returns the 23 codes, sorted. The caller owns the slice.
func Codes() []string { return slices.Clone(codes) }

// Valid reports whether code is one of the 23. Codes are compared as written: "zh-tw" is invalid.
func Valid(code string) bool { return index(code) >= 0 }

func index(code string) int { return slices.Index(codes, code) }

// Choose returns the language of the answer: requested, or fallback (the application's default) if the request specifies none. spoken are
// the codes that the model supports.
//
// It returns ErrUnknown for a code that is not one of the 23, and ErrUnsupported for one that the model does not support. If the application
// has another default and the model supports only English, the request must therefore specify "en".
func Choose(requested, fallback string, spoken []string) (string, error) {
	code := requested
	if code == "" {
		code = fallback
	}
	if !Valid(code) {
		return "", fmt.Errorf("language %q: %w", code, ErrUnknown)
	}
	if !slices.Contains(spoken, code) {
		return "", fmt.Errorf("language %q: %w", code, ErrUnsupported)
	}
	return code, nil
}
