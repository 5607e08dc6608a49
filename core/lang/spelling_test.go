package lang

import "testing"

func TestSpeller(t *testing.T) {
	names := []string{"butterfly", "dog", "dogs", "cat", "Zürich", "polar bear", "black bird", "blackbird", "mushroom", "猫", "紅色", "fox"}
	for _, tt := range []struct{ name, want string }{
		{"buterfly", "butterfly"}, // deleted
		{"buttterfly", "butterfly"},
		{"butterfyl", "butterfly"}, // swapped
		{"Butetrflx", "butterfly"}, // two edits
		{"bufferflx", ""},          // three edits
		{"dig", "dog"},
		{"dgo", "dog"},
		{"dag", "dog"},
		{"dogz", "dog"}, // and dogs, which comes later
		{"doxx", ""},    // two edits of a short name
		{"zurich", "Zürich"},
		{"ZURICK", "Zürich"},
		{"polarbear", "polar bear"},
		{"blackbirds", "blackbird"},
		{"musrooom", "mushroom"},
		{"犬", ""}, // one letter
		{"紅", ""},
		{"紅角", "紅色"},
		{"", ""},
		{"xylophone", ""},
	} {
		forward, back := NewSpeller(tt.name), NewSpeller(tt.name)
		for i := range names {
			forward.Consider(names[i])
			back.Consider(names[len(names)-1-i])
		}
		if got, again := forward.Nearest(), back.Nearest(); got != tt.want || again != tt.want {
			t.Errorf("%q: %q and, in another order, %q; want %q", tt.name, got, again, tt.want)
		}
	}
}

// TestSpell checks that a table offers its names in one language.
func TestSpell(t *testing.T) {
	table := newTable(t)
	for _, tt := range []struct{ name, code, want string }{
		{"Labratory", English, "Laboratory"}, {"dog house", English, "doghouse"}, {"KOPK", "tr", "köpek"}, {"köpk", English, ""}, {"dgo", "xx", ""},
	} {
		s := NewSpeller(tt.name)
		table.Spell(s, tt.code)
		if got := s.Nearest(); got != tt.want {
			t.Errorf("%q in %s: %q, want %q", tt.name, tt.code, got, tt.want)
		}
	}
}
