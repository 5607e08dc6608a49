package lang

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Fold returns the folded form of a name, which searches compare. Two names with the same folded form differ only in case, accents, width
// or spacing. Folding is the same in all languages:
//
//	case      Unicode's full case folding: ß and ẞ become ss, ς becomes σ; I, İ, ı and i all become i,
//	          so a search finds Turkish names however a keyboard or a program cased them
//	width     NFKD: full-width Latin, half-width katakana, ligatures, circled digits
//	accents   marks of the canonical combining classes 10–36 and 200–240 are removed: Latin, Greek
//	          and Cyrillic diacritics, Hebrew points, Arabic vowel signs, hamza and madda above or
//	          below a letter. Letters that look accented to a reader lose the accent too: ø ł đ ħ ŧ
//	          become o l d h t; æ œ become ae oe; Arabic tatweel is removed
//	kept      marks that make another letter: vowel signs, viramas and tones of all Indic and
//	          South-East Asian scripts, dakuten and handakuten (か is not が), the breve of й;
//	          Hangul stays in complete syllables (가* does not find 강)
//	Hindi     the Devanagari nukta is removed and candrabindu becomes anusvara: writers often omit
//	          them like accents (Bengali and Gurmukhi keep both, where they make other letters)
//	kana      katakana becomes hiragana
//	the rest  joiners, soft hyphens, variation selectors and direction marks are removed; typographic
//	          apostrophes and hyphens become ' and -; white space becomes one space, none at the ends
//
// Simplified and traditional Chinese stay different, since zh and zh-TW are two languages here. The result is NFC, Fold(Fold(s)) ==
// Fold(s), and bytes that are not valid UTF-8 become U+FFFD.
func Fold(s string) string { return strings.TrimSuffix(foldPrefix(s), " ") }

// foldPrefix folds s but keeps one space at its end, so that "black *" matches only complete words "black".
func foldPrefix(s string) string {
	if lower, ok := foldASCII(s); ok {
		return lower
	}
	var b strings.Builder
	b.Grow(len(s))
	var last rune // the last rune written, for marks that depend on it
	space := true // leading space is removed
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

// foldASCII folds an ASCII name without the slow steps. It returns false for other names, and for control characters and superfluous
// spaces.
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

// foldRune folds the case of r, and katakana to hiragana.
func foldRune(r rune) rune {
	if 'ァ' <= r && r <= 'ヶ' || r == 'ヽ' || r == 'ヾ' {
		return r - ('ァ' - 'ぁ')
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

// spelt has the replacements that are not a single case-folded rune, by the result of foldRune.
var spelt = map[rune]string{
	'ß': "ss", 'æ': "ae", 'œ': "oe",
	'ø': "o", 'ł': "l", 'đ': "d", 'ħ': "h", 'ŧ': "t",
	'‘': "'", '’': "'", 'ʼ': "'", '‛': "'", '‐': "-", '‒': "-", '–': "-",
}

// ignorable reports whether r is invisible: joiners, direction marks, soft hyphens, variation selectors, byte order marks, control
// characters. It also returns true for the Arabic tatweel.
func ignorable(r rune) bool {
	switch {
	case r == tatweel, r == '\u034f', r == '\u115f', r == '\u1160', r == '\u3164', r == '\u180e':
		return true
	case unicode.Is(unicode.Variation_Selector, r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Cc, r):
		return true
	}
	return false
}
