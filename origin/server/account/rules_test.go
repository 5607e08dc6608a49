package account

import (
	"errors"
	"net/mail"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCheckEmail(t *testing.T) {
	tests := []struct{ in, want string }{
		{"a@b.example", "a@b.example"},
		{" Ada.Lovelace+Test@B.Example\n", "ada.lovelace+test@b.example"},
		{"o'hara@b.example", "o'hara@b.example"},
		{"a@bücher.example", "a@xn--bcher-kva.example"},
		{"", ""},
		{"a", ""},
		{"@b.example", ""},
		{"a@", ""},
		{"a@localhost", ""},
		{"a@b@c.example", ""},
		{"a b@c.example", ""},
		{"\"a b\"@c.example", ""},
		{"Ada <a@b.example>", ""},
		{"a@b.example, c@d.example", ""},
		{"a@b.example\r\nBcc: c@d.example", ""},
		{"a\r\n@b.example", ""},
		{"a\x00@b.example", ""},
		{".a@b.example", ""},
		{"a..b@c.example", ""},
		{"é@b.example", ""},
		{"a@[127.0.0.1]", ""},
		{"a@-b.example", ""},
		{strings.Repeat("a", 65) + "@b.example", ""},
		{"a@" + strings.Repeat("b.", 130) + "example", ""},
	}
	for _, tt := range tests {
		got, err := checkEmail(tt.in)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("checkEmail(%q) = %q, %v, want %q", tt.in, got, err, tt.want)
		}
	}
}

func FuzzCheckEmail(f *testing.F) {
	for _, s := range []string{"a@b.example", "A@BÜCHER.example", "a@b.example\r\nTo: x", "\"x\"@y.z"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		email, err := checkEmail(s)
		if err != nil {
			return
		}
		if again, err := checkEmail(email); again != email || err != nil {
			t.Errorf("checkEmail(%q) = %q, %v", email, again, err)
		}
		list, err := mail.ParseAddressList(email)
		if err != nil || len(list) != 1 || strings.ContainsAny(email, "\r\n\x00 ,;<>\"") || len(email) > maxEmailBytes {
			t.Errorf("checkEmail(%q) = %q: %v, %v", s, email, list, err)
		}
	})
}

func TestCheckPassword(t *testing.T) {
	for _, good := range []string{"a lantern in the fog", strings.Repeat("ab", 512), "ÄÖÜäöüß€ab", "          1"} {
		if _, err := checkPassword(good, "Ada", "ada@x.example"); err != nil {
			t.Errorf("checkPassword(%.20q) = %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "ninechars", "ÄÖÜäöüß€a", strings.Repeat("ab", 513), strings.Repeat("ab", 1<<15), strings.Repeat("\u1112\u1161\u11ab", 500),
		"1234567890", "PassWord123", "aaaaaaaaaaaa", "ada@x.example", "Ada Lovelace", "correcthorsebatterystaple",
	} {
		if _, err := checkPassword(bad, "ada lovelace", "ada@x.example"); !errors.Is(err, ErrPassword) {
			t.Errorf("checkPassword(%.20q) = %v", bad, err)
		}
	}
	for _, w := range worst {
		if utf8.RuneCountInString(w) < minPasswordRunes || w != strings.ToLower(w) {
			t.Errorf("worst password %q does no work", w)
		}
	}
	if len(worst) < 150 {
		t.Errorf("%d worst passwords", len(worst))
	}
}

func TestCheckName(t *testing.T) {
	if got, err := checkName("  Ada 愛 "); got != "Ada 愛" || err != nil {
		t.Errorf("checkName = %q, %v", got, err)
	}
	for _, bad := range []string{"", "  ", "a\r\nb", "a\x00", "\xff", strings.Repeat("愛", 101)} {
		if _, err := checkName(bad); !errors.Is(err, ErrName) {
			t.Errorf("checkName(%q) = %v", bad, err)
		}
	}
}
