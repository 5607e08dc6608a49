package lang

import (
	"errors"
	"slices"
	"testing"
)

func TestCodes(t *testing.T) {
	got := Codes()
	if len(got) != 23 || !slices.IsSorted(got) {
		t.Fatalf("Codes() = %v, want 23 sorted", got)
	}
	got[0] = "xx"
	if Valid("xx") || !Valid("ar") {
		t.Error("changing the result of Codes changed the codes")
	}
	for _, code := range []string{"", "EN", "zh-tw", "zh_TW", "e", "ena", "el", "zh-"} {
		if Valid(code) {
			t.Errorf("Valid(%q) = true", code)
		}
	}
}

func TestChoose(t *testing.T) {
	english := []string{English}
	tests := []struct {
		name                string
		requested, fallback string
		spoken              []string
		want                string
		err                 error
	}{
		{"the default", "", "de", Codes(), "de", nil},
		{"asked wins", "fr", "de", Codes(), "fr", nil},
		{"unknown", "xx", "en", Codes(), "", ErrUnknown},
		{"unknown to an English model", "xx", "en", english, "", ErrUnknown},
		{"English model, English default", "", "en", english, "en", nil},
		{"English model, German default", "", "de", english, "", ErrUnsupported},
		{"English model, German default, English asked", "en", "de", english, "en", nil},
		{"English model, German asked", "de", "en", english, "", ErrUnsupported},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Choose(tt.requested, tt.fallback, tt.spoken)
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("Choose = %q, %v, want %q, %v", got, err, tt.want, tt.err)
			}
		})
	}
	for _, code := range Codes() {
		if got, err := Choose(code, "en", Codes()); got != code || err != nil {
			t.Errorf("Choose(%q) = %q, %v", code, got, err)
		}
	}
}
