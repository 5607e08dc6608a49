package lang

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/testkit"
)

// bundle returns files of names. The languages in other have its names, and all others have names.
func bundle(ids, names []string, other map[string][]string) map[string][]byte {
	files := map[string][]byte{}
	for _, code := range Codes() {
		list := names
		if o, ok := other[code]; ok {
			list = o
		}
		var b strings.Builder
		for i, name := range list {
			fmt.Fprintf(&b, "%s\t%s\n", ids[i], name)
		}
		files[code] = []byte(b.String())
	}
	return files
}

func newTable(t testing.TB) *Table {
	t.Helper()
	ids := []string{"ai_dog", "ai_doghouse", "ai_hotdog", "ai_label", "ai_lab", "ai_cafe", "ai_ice", "ai_ice2"}
	table, err := Parse(bundle(ids,
		[]string{"dog", "doghouse", "hot dog", "label", "Laboratory", "café", "ice", "Ice"},
		map[string][]string{
			"zh": {"狗", "狗屋", "热狗", "标签", "实验室", "咖啡馆", "冰", "冰块"},
			"tr": {"köpek", "köpek kulübesi", "sosisli", "etiket", "ışık", "kafe", "İp", "ip"},
			"ja": {"犬", "イヌごや", "ホットドッグ", "かき", "がき", "カフェ", "氷", "アイス"},
			"ko": {"개", "개집", "핫도그", "가", "강", "카페", "얼음", "빙수"},
			"hi": {"कुत्ता", "किताब", "कीवी", "फ़ोन", "चाँद", "कैफ़े", "बर्फ", "बर्फ़ीला"},
		}), ids)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestSearch(t *testing.T) {
	table := newTable(t)
	tests := []struct {
		code, pattern string
		want          []string
	}{
		{"en", "dog*", []string{"ai_dog", "ai_doghouse"}},
		{"en", "DOG*", []string{"ai_dog", "ai_doghouse"}},
		{"en", "dog", []string{"ai_dog"}},
		{"en", "do", []string{}},
		{"en", "og*", []string{}},
		{"en", "hot *", []string{"ai_hotdog"}},
		{"en", "lab*", []string{"ai_label", "ai_lab"}},
		{"en", "CAFE", []string{"ai_cafe"}},
		{"en", "Café*", []string{"ai_cafe"}},
		{"en", "ice", []string{"ai_ice2", "ai_ice"}}, // equal after folding, so ordered by name: "Ice" first
		{"en", "", []string{}},
		{"en", "*", []string{"ai_cafe", "ai_dog", "ai_doghouse", "ai_hotdog", "ai_ice2", "ai_ice", "ai_label", "ai_lab"}},
		{"en", "d*g", []string{}},
		{"en", "dog**", []string{}},
		{"en", "köpek*", []string{}}, // a name in another language
		{"zh", "狗*", []string{"ai_dog", "ai_doghouse"}},
		{"zh", "狗", []string{"ai_dog"}},
		{"zh", "热*", []string{"ai_hotdog"}},
		{"tr", "KÖPEK*", []string{"ai_dog", "ai_doghouse"}},
		{"tr", "kopek", []string{"ai_dog"}},
		{"tr", "IŞ*", []string{"ai_lab"}},
		{"tr", "ip", []string{"ai_ice2", "ai_ice"}}, // "ip" before "İp"
		{"ja", "いぬ*", []string{"ai_doghouse"}},
		{"ja", "ｲﾇ*", []string{"ai_doghouse"}},
		{"ja", "か*", []string{"ai_label", "ai_cafe"}},
		{"ja", "が*", []string{"ai_lab"}},
		{"ko", "가*", []string{"ai_label"}},
		{"ko", "개*", []string{"ai_dog", "ai_doghouse"}},
		{"ko", "\u1100\u1162*", []string{"ai_dog", "ai_doghouse"}},
		{"hi", "कु*", []string{"ai_dog"}},
		{"hi", "कि*", []string{"ai_doghouse"}},
		{"hi", "फोन", []string{"ai_label"}},
		{"hi", "चांद", []string{"ai_lab"}},
		{"de", "\xff*", []string{}},
	}
	for _, tt := range tests {
		t.Run(tt.code+" "+tt.pattern, func(t *testing.T) {
			got, err := table.Search(tt.pattern, tt.code)
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("Search(%q, %s): %v, -want +got:\n%s", tt.pattern, tt.code, err, diff)
			}
		})
	}
	if got, err := table.Search("dog", "xx"); !errors.Is(err, ErrUnknown) || got != nil {
		t.Errorf("Search in xx = %v, %v, want ErrUnknown", got, err)
	}
}

func TestResolve(t *testing.T) {
	table := newTable(t)
	tests := []struct {
		code, name, want string
		ok               bool
	}{
		{"en", "dog", "ai_dog", true},
		{"en", "DOG", "ai_dog", true},
		{"en", " hot  dog ", "ai_hotdog", true},
		{"en", "cafe\u0301", "ai_cafe", true},
		{"en", "cafe", "ai_cafe", true},
		{"en", "ice", "ai_ice", true},
		{"en", "Ice", "ai_ice2", true},
		{"en", "ICE", "", false}, // two names fold to it, and neither has this spelling
		{"tr", "İp", "ai_ice", true},
		{"tr", "ip", "ai_ice2", true},
		{"tr", "IŞIK", "ai_lab", true},
		{"en", "dog*", "", false},
		{"en", "köpek", "", false},
		{"en", "", "", false},
		{"xx", "dog", "", false},
	}
	for _, tt := range tests {
		if got, ok := table.Resolve(tt.name, tt.code); got != tt.want || ok != tt.ok {
			t.Errorf("Resolve(%q, %s) = %q, %v, want %q, %v", tt.name, tt.code, got, ok, tt.want, tt.ok)
		}
	}
}

func TestName(t *testing.T) {
	table := newTable(t)
	tests := []struct {
		id, code, want string
		ok             bool
	}{
		{"ai_cafe", "en", "café", true},
		{"ai_dog", "zh", "狗", true},
		{"ai_dog", "zh-TW", "dog", true},
		{"ai_dog", "xx", "", false},
		{"dog", "en", "", false},
	}
	for _, tt := range tests {
		if got, ok := table.Name(tt.id, tt.code); got != tt.want || ok != tt.ok {
			t.Errorf("Name(%q, %q) = %q, %v, want %q, %v", tt.id, tt.code, got, ok, tt.want, tt.ok)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	ids := []string{"a", "b"}
	tests := []struct {
		name string
		ids  []string
		de   string
		want error
	}{
		{"good, any order, CRLF, no last newline", ids, "b\tB\r\na\tA", nil},
		{"missing concept", ids, "a\tA\n", ErrFormat},
		{"concept twice", ids, "a\tA\na\tC\nb\tB\n", ErrFormat},
		{"unknown concept", ids, "a\tA\nb\tB\nc\tC\n", ErrFormat},
		{"empty name", ids, "a\t\nb\tB\n", ErrFormat},
		{"one column", ids, "a\nb\tB\n", ErrFormat},
		{"three columns", ids, "a\tA\tA\nb\tB\n", ErrFormat},
		{"empty line", ids, "a\tA\n\nb\tB\n", ErrFormat},
		{"no UTF-8", ids, "a\t\xff\nb\tB\n", ErrFormat},
		{"long name", ids, "a\t" + strings.Repeat("x", maxNameBytes+1) + "\nb\tB\n", ErrFormat},
		{"large file", ids, "a\tA\nb\tB\n" + strings.Repeat("\n", maxFileBytes), ErrFormat},
		{"the same id twice", []string{"a", "a"}, "a\tA\n", ErrFormat},
		{"too many concepts", make([]string, maxConcepts+1), "", ErrFormat},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := bundle(ids, []string{"A", "B"}, nil)
			files["de"] = []byte(tt.de)
			if _, err := Parse(files, tt.ids); !errors.Is(err, tt.want) {
				t.Errorf("Parse = %v, want %v", err, tt.want)
			}
		})
	}
	files := bundle(ids, []string{"A", "B"}, nil)
	delete(files, "zh-TW")
	if _, err := Parse(files, ids); !errors.Is(err, ErrFormat) {
		t.Errorf("Parse without zh-TW = %v, want ErrFormat", err)
	}
}

// slow is Search without an index: it folds and compares every name.
func slow(table *Table, pattern, code string) []string {
	type match struct{ key, name, id string }
	var found []match
	for _, id := range table.ids {
		name, _ := table.Name(id, code)
		key := Fold(name)
		stem, wild := strings.CutSuffix(pattern, "*")
		if key == Fold(pattern) && !wild || wild && strings.HasPrefix(key, foldPrefix(stem)) {
			found = append(found, match{key, name, id})
		}
	}
	slices.SortFunc(found, func(a, b match) int {
		return slices.Compare([]string{a.key, a.name, a.id}, []string{b.key, b.name, b.id})
	})
	ids := []string{}
	for _, m := range found {
		ids = append(ids, m.id)
	}
	return ids
}

func TestSearchEqualsSlowSearch(t *testing.T) {
	const letters = "aAäbBç iıİIßsがカか狗कि\u0301"
	for seed := range testkit.Seeds(t, 40, 2000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		word := func(n int) string {
			out := make([]rune, 1+rng.IntN(n))
			for i := range out {
				out[i] = []rune(letters)[rng.IntN(len([]rune(letters)))]
			}
			return string(out)
		}
		var ids, names []string
		for i := range 30 {
			ids, names = append(ids, fmt.Sprintf("id%02d", rng.IntN(1000)*100+i)), append(names, "x"+word(4))
		}
		table, err := Parse(bundle(ids, names, nil), ids)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			pattern := "x" + word(3) + []string{"", "*"}[rng.IntN(2)]
			got, err := table.Search(pattern, "fi")
			if diff := cmp.Diff(slow(table, pattern, "fi"), got); diff != "" || err != nil {
				t.Fatalf("seed %d: Search(%q): %v, -want +got:\n%s", seed, pattern, err, diff)
			}
		}
	}
}

// releasedFiles returns the names of the default network's concepts by language, and the concepts' ids.
func releasedFiles(t testing.TB) (files map[string][]byte, ids []string) {
	t.Helper()
	files = map[string][]byte{}
	for _, code := range Codes() {
		data, err := os.ReadFile(testkit.DataPath(t, "model-next", "names", code+".tsv"))
		if err != nil {
			t.Fatal(err)
		}
		files[code] = data
	}
	for row := range strings.Lines(string(files["en"])) {
		id, _, _ := strings.Cut(row, "\t")
		ids = append(ids, id)
	}
	return files, ids
}

func releasedTable(t testing.TB) *Table {
	t.Helper()
	table, err := Parse(releasedFiles(t))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestRealNames: every concept is found by its name in every language, in any case and normalisation. Folding makes few names of different
// concepts equal.
func TestRealNames(t *testing.T) {
	table := releasedTable(t)
	for _, code := range Codes() {
		collisions := 0
		for i, id := range table.ids {
			name, _ := table.Name(id, code)
			if got, ok := table.Resolve(name, code); !ok || got != id {
				t.Errorf("%s: Resolve(%q) = %q, want %q", code, name, got, id)
			}
			for _, spelling := range []string{strings.ToUpper(name), strings.ToLower(name), Fold(name)} {
				got, err := table.Search(spelling, code)
				if err != nil || !slices.Contains(got, id) {
					t.Errorf("%s: Search(%q) = %v, %v, want %q in it", code, spelling, got, err, id)
				}
				if len(got) > 1 && spelling == Fold(name) {
					collisions++
					t.Logf("%s: %q is one of %d with this folded name", code, name, len(got))
				}
			}
			if i%50 == 0 {
				stem := string([]rune(name)[:1]) + "*"
				got, _ := table.Search(stem, code)
				if diff := cmp.Diff(slow(table, stem, code), got); diff != "" {
					t.Errorf("%s: Search(%q) -want +got:\n%s", code, stem, diff)
				}
			}
		}
		if collisions > 6 {
			t.Errorf("%s: %d names share a folded form, want at most 6", code, collisions)
		}
	}
}

func BenchmarkSearch(b *testing.B) {
	table := releasedTable(b)
	for _, bb := range []struct{ code, pattern string }{{"en", "dog*"}, {"en", "s*"}, {"zh", "狗*"}, {"hi", "कु*"}} {
		b.Run("language="+bb.code+"/pattern="+bb.pattern, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := table.Search(bb.pattern, bb.code); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	files, ids := releasedFiles(b)
	for b.Loop() {
		if _, err := Parse(files, ids); err != nil {
			b.Fatal(err)
		}
	}
}
