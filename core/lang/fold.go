package lang

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Fold returns the form of a name that searches compare. Two names with the same folded form
// differ only in case, accents, width or spacing. Folding is the same in all languages:
//
//	case      as Unicode's full case folding: ß and ẞ are ss, ς is σ; I, İ, ı and i are all i,
//	          so Turkish names are found whichever way a keyboard or a program cased them
//	width     NFKD: full-width Latin, half-width katakana, ligatures, circled digits
//	accents   marks of the canonical combining classes 10–36 and 200–240 go: Latin, Greek and
//	          Cyrillic diacritics, Hebrew points, Arabic vowel signs, hamza and madda above or
//	          below a letter. What is not a mark but an accent to a reader goes too: ø ł đ ħ ŧ
//	          are o l d h t; æ œ are ae oe; Arabic tatweel goes
//	kept      marks that make another letter: vowel signs, viramas and tones of all Indic and
//	          South-East Asian scripts, dakuten and handakuten (か is not が), the breve of й;
//	          Hangul stays in whole syllables (가* does not find 강)
//	Hindi     the Devanagari nukta goes and candrabindu is anusvara: writers leave them out as
//	          they leave out accents (Bengali and Gurmukhi keep both, they are letters there)
//	kana      katakana is hiragana
//	the rest  joiners, soft hyphens, variation selectors and direction marks go; typographic
//	          apostrophes and hyphens are ' and -; white space is one space, none at the ends
//
// Simplified and traditional Chinese stay apart, as zh and zh-TW are two languages here.
// The result is NFC, Fold(Fold(s)) == Fold(s), and bytes that are no UTF-8 become U+FFFD.
func Fold(s string) string { return strings.TrimSuffix(foldPrefix(s), " ") }

// foldPrefix folds s but keeps one space at its end, so that "black *" asks for a word border.
func foldPrefix(s string) string {
	if lower, ok := foldASCII(s); ok {
		return lower
	}
	var b strings.Builder
	b.Grow(len(s))
	var last rune // the last rune written, for marks that depend on it
	space := true // leading space goes
	for _, r := range norm.NFKD.String(strings.ToValidUTF8(s, "\uFFFD")) {
		switch {
		case unicode.IsSpace(r):
			if !space {
				b.WriteByte(' ')
			}
			space, last = true, ' '
			continue
		case ignorable(r):
			continue
		}
		r, keep := foldMark(r, last)
		if !keep {
			continue
		}
		space = false
		r = foldRune(r)
		if t, ok := spelt[r]; ok {
			b.WriteString(t)
		} else {
			b.WriteRune(r)
		}
		last = r
	}
	return norm.NFC.String(b.String())
}

// foldASCII is the short way for most names of most languages.
func foldASCII(s string) (string, bool) {
	upper, space := false, true
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= utf8.RuneSelf || c < ' ' || c == 0x7f:
			return "", false
		case c == ' ' && space:
			return "", false // leading or double space
		}
		space = c == ' '
		upper = upper || 'A' <= c && c <= 'Z'
	}
	if upper {
		return strings.ToLower(s), true
	}
	return s, true
}

const (
	devanagariCandrabindu = '\u0901'
	devanagariAnusvara    = '\u0902'
	devanagariNukta       = '\u093c'
	breve                 = '\u0306'
	tatweel               = '\u0640'
)

// foldMark returns the folded form of a mark that follows last, or false if folding removes it.
func foldMark(r, last rune) (rune, bool) {
	switch r {
	case devanagariNukta:
		return 0, false
	case devanagariCandrabindu:
		return devanagariAnusvara, true
	case breve:
		return r, last == 'и'
	}
	if r < 0x300 || !unicode.Is(unicode.Mn, r) {
		return r, true
	}
	ccc := norm.NFD.PropertiesString(string(r)).CCC()
	return r, ccc < 10 || ccc > 36 && ccc < 200
}

// foldRune folds the case of r, katakana to hiragana.
func foldRune(r rune) rune {
	if 'ァ' <= r && r <= 'ヶ' || r == 'ヽ' || r == 'ヾ' {
		return r - ('ァ' - 'ぁ')
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

// spelt holds what one rune cannot say, for runes as foldRune leaves them.
var spelt = map[rune]string{
	'ß': "ss", 'æ': "ae", 'œ': "oe",
	'ø': "o", 'ł': "l", 'đ': "d", 'ħ': "h", 'ŧ': "t",
	'‘': "'", '’': "'", 'ʼ': "'", '‛': "'", '‐': "-", '‒': "-", '–': "-",
}

// ignorable reports runes that show nothing: joiners, direction marks, soft hyphens,
// variation selectors, byte order marks, control characters, and the Arabic tatweel.
func ignorable(r rune) bool {
	switch {
	case r == tatweel, r == '\u034f', r == '\u115f', r == '\u1160', r == '\u3164', r == '\u180e':
		return true
	case unicode.Is(unicode.Variation_Selector, r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Cc, r):
		return true
	}
	return false
}
