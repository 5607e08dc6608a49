package lang

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

func TestFoldEqualsOtherForms(t *testing.T) {
	tests := []struct {
		script string
		same   []string
	}{
		{"Latin case", []string{"dog", "DOG", "Dog", "dOg"}},
		{"Latin accents, composed and not", []string{"château", "CHÂTEAU", "cha\u0302teau", "chateau", "ｃｈａｔｅａｕ"}},
		{"German", []string{"straße", "STRASSE", "STRAẞE", "strasse"}},
		{"German umlaut", []string{"küche", "KÜCHE", "ku\u0308che", "kuche"}},
		{"Nordic", []string{"øl", "ØL", "ol", "öl"}},
		{"Nordic ligature", []string{"æble", "ÆBLE", "aeble"}},
		{"Polish", []string{"łódź", "ŁÓDŹ", "lodz"}},
		{"Vietnamese, two accents", []string{"phở", "PHỞ", "pho", "pho\u031b\u0309"}},
		{"Turkish, both i", []string{"ışık", "IŞIK", "isik", "İŞİK", "işik", "i\u0307şik"}},
		{"Greek, final sigma", []string{"σκύλος", "ΣΚΥΛΟΣ", "σκυλοσ", "σκυλος"}},
		{"Cyrillic case", []string{"собака", "СОБАКА"}},
		{"Cyrillic yo", []string{"ёж", "ЁЖ", "еж", "е\u0308ж"}},
		{"Cyrillic stress", []string{"за\u0301мок", "замок"}},
		{"Cyrillic short i, composed and not", []string{"чай", "ЧАЙ", "чаи\u0306", "ЧАИ\u0306"}},
		{"Hebrew points", []string{"כֶּלֶב", "כלב"}},
		{"Arabic vowel signs", []string{"كَلْب", "كلب", "كـلـب"}},
		{"Arabic hamza and madda", []string{"أسد", "اسد", "ا\u0654سد", "إسد", "آسد"}},
		{"Arabic presentation forms", []string{"ﻛﻠﺐ", "كلب"}},
		{"Devanagari nukta", []string{"फ़ोन", "फोन", "फ\u093cोन"}},
		{"Devanagari candrabindu", []string{"चाँद", "चांद"}},
		{"Bengali, composed and not", []string{"ড\u09bcিম", "ড়িম"}},
		{"Gurmukhi, composed and not", []string{"ਸ\u0a3cੇਰ", "ਸ਼ੇਰ"}},
		{"kana", []string{"イヌ", "いぬ", "ｲﾇ"}},
		{"half-width dakuten", []string{"ｶﾞｯｺｳ", "ガッコウ", "がっこう", "か\u3099っこう"}},
		{"Hangul, syllables and jamo", []string{"개", "\u1100\u1162"}},
		{"full width", []string{"ＴＶ", "tv", "ｔｖ"}},
		{"Han compatibility", []string{"\uf9d2", "戮"}},
		{"space", []string{"polar bear", "  polar \t bear ", "Polar\u00a0Bear", "polar\u3000bear"}},
		{"apostrophe and hyphen", []string{"close-up l'eau", "close\u2010up l’eau"}},
		{"joiners and marks of direction", []string{"cup", "c\u200dup", "\u200fcup", "cu\u00adp", "\ufeffcup"}},
		{"ligature", []string{"ﬁsh", "fish", "FISH"}},
	}
	for _, tt := range tests {
		t.Run(tt.script, func(t *testing.T) {
			want := Fold(tt.same[0])
			for _, s := range tt.same[1:] {
				if got := Fold(s); got != want {
					t.Errorf("Fold(%q) = %q, Fold(%q) = %q", s, got, tt.same[0], want)
				}
			}
		})
	}
}

func TestFoldKeepsDifferentNames(t *testing.T) {
	tests := []struct{ script, a, b string }{
		{"Devanagari vowel signs", "कि", "की"},
		{"Devanagari vowel sign and none", "कु", "क"},
		{"Devanagari virama", "क्त", "कत"},
		{"Devanagari anusvara", "अंग", "अग"},
		{"Bengali vowel signs", "বিড়াল", "বড়াল"},
		{"Bengali nukta", "য়", "য"},
		{"Bengali candrabindu", "চাঁদ", "চাদ"},
		{"Gurmukhi vowel signs", "ਕਿ", "ਕੁ"},
		{"Gurmukhi tippi", "ਅੰਬ", "ਅਬ"},
		{"Tamil virama", "க்", "க"},
		{"Thai tone", "ข้าว", "ขาว"},
		{"Thai vowel sign", "กุ", "ก"},
		{"dakuten", "が", "か"},
		{"handakuten", "パン", "ハン"},
		{"small kana", "きゃ", "きや"},
		{"Cyrillic short i", "чай", "чаи"},
		{"Hangul final", "강", "가"},
		{"Chinese scripts", "龙", "龍"},
		{"Arabic letters", "مدرسة", "مدرس"},
		{"Arabic dotted letters", "ب", "ت"},
		{"words", "black bird", "blackbird"},
	}
	for _, tt := range tests {
		t.Run(tt.script, func(t *testing.T) {
			if Fold(tt.a) == Fold(tt.b) {
				t.Errorf("Fold(%q) = Fold(%q) = %q", tt.a, tt.b, Fold(tt.a))
			}
		})
	}
}

// TestFoldEqualsUnicodeCaseFolding compares Fold with the full case folding of x/text, which must change nothing that matters to Fold. Only
// the iota subscript differs: case folding makes it a letter, and Fold removes it as a mark.
func TestFoldEqualsUnicodeCaseFolding(t *testing.T) {
	oracle := cases.Fold()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		s := string(r)
		if oracle.String(s) == s || strings.ContainsRune(norm.NFD.String(s), '\u0345') {
			continue
		}
		if got, want := Fold(oracle.String(s)), Fold(s); got != want {
			t.Errorf("%U: Fold after case folding = %q, before = %q", r, got, want)
		}
	}
}

func FuzzFold(f *testing.F) {
	for _, s := range []string{"dog", "İı", "か\u3099", "ड\u093c", "ά\u0345", "\u1100\u1161\u11a8", "\xff", " a  b ", "ǆŉﬁ㌀", "и\u0301\u0306"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := Fold(s)
		if twice := Fold(once); twice != once {
			t.Errorf("Fold(%q) = %q, and folded again %q", s, once, twice)
		}
		if !utf8.ValidString(once) || !norm.NFC.IsNormalString(once) {
			t.Errorf("Fold(%q) = %q is not NFC", s, once)
		}
		for _, form := range []norm.Form{norm.NFC, norm.NFD, norm.NFKC, norm.NFKD} {
			if utf8.ValidString(s) && Fold(form.String(s)) != once {
				t.Errorf("Fold(%q) differs from that of another normal form", s)
			}
		}
	})
}
