package jsonio

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
)

func TestBase64(t *testing.T) {
	long := strings.Repeat("QUJD", 30)
	tests := []struct {
		name, text, want string
		bad              int // offset in the string of the invalid character, or -1 if there is none
	}{
		{"empty", "", "", -1},
		{"one byte", "QQ==", "A", -1},
		{"two bytes", "QUI=", "AB", -1},
		{"three bytes", "QUJD", "ABC", -1},
		{"no padding", "QUJDQQ", "ABCA", -1},
		{"line ends", "QU\\nJD\\r\\nQQ=\\n=\\n", "ABCA", -1},
		{"escaped slash", `\/\/\/\/`, "\xff\xff\xff", -1},
		{"the URL alphabet", "_-_-", "\xff\xef\xfe", -1},
		{"long", long + "QQ==", strings.Repeat("ABC", 30) + "A", -1},
		{"one character", "Q", "", 1},
		{"one character more", "QUJDQ", "", 5},
		{"half a padding", "QQ=", "", 3},
		{"padding alone", "=", "", 0},
		{"too much padding", "QUI==", "", 4},
		{"text after the padding", "QQ==QQ==", "", 4},
		{"a space", "QU JD", "", 2},
		{"data URL", "data:image/png;base64,QUJD", "", 4},
		{"bad far in", long + "*AAA", "", 120},
		{"beyond ASCII", "QUJé", "", 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := parse(t, `"`+tt.text+`"`)
			got, err := v.Base64([]byte("kept"))
			var e *Error
			switch {
			case tt.bad < 0 && (err != nil || string(got) != "kept"+tt.want):
				t.Errorf("Base64 = %q, %v; want %q", got, err, "kept"+tt.want)
			case tt.bad >= 0 && (!errors.As(err, &e) || !errors.Is(err, ErrBase64) || e.Offset != tt.bad || string(got) != "kept"):
				t.Errorf("Base64 = %q, %v; want an error at byte %d", got, err, tt.bad)
			}
		})
	}
}

// TestDataURL: a data URL of a given type counts as its base64, and no other text does.
func TestDataURL(t *testing.T) {
	for text, bad := range map[string]int{
		"data:image/png;base64,QUJD": -1, "DATA:Image/JPEG;charset=utf-8;BASE64,QUJD": -1, `data:image\/png;base64,QUJD`: -1, "QUJD": -1,
		"data:image/png;base64,QU*D": 24, "data:image/svg+xml,QUJD": 4, "data:text/plain;base64,QUJD": 4, "data:;base64,QUJD": 4, "image/png;base64,QUJD": 9,
		"data:image/" + strings.Repeat("p", 200) + ";base64,QUJD": 4,
	} {
		got, err := parse(t, `"`+text+`"`).Base64(nil, "video/", "image/")
		var e *Error
		if bad < 0 && (err != nil || string(got) != "ABC") || bad >= 0 && (!errors.As(err, &e) || e.Offset != bad) {
			t.Errorf("%.40q = %q, %v", text, got, err)
		}
	}
}

// TestDecodeGroups compares the fast form with the generic one, for all lengths and for a bad character at every place.
func TestDecodeGroups(t *testing.T) {
	for n := range 260 {
		picture := make([]byte, n)
		for i := range picture {
			picture[i] = byte(i*89 + n)
		}
		text := []byte(base64.StdEncoding.EncodeToString(picture))
		check(t, text)
		if n%13 != 0 {
			continue
		}
		for i := range text {
			old := text[i]
			for _, c := range []byte("*-_=@[`{ \n\x00\x2c\x2e\x3a\x80\xaf\xff") {
				text[i] = c
				check(t, text)
			}
			text[i] = old
		}
	}
	for c := range 256 {
		text := bytes.Repeat([]byte{'A'}, 64)
		text[40] = byte(c)
		check(t, text)
	}
}

// check compares the results of the fast and the generic loops. The fast loop ends with the generic one, so both must read and write the
// same numbers of bytes.
func check(t *testing.T, text []byte) {
	t.Helper()
	fast, slow := make([]byte, len(text)+32), make([]byte, len(text)+32)
	ate, written := decodeGroups(fast, text)
	wantAte, wantMade := decodeGroupsGeneric(slow, text)
	if ate != wantAte || written != wantMade || !bytes.Equal(fast[:written], slow[:written]) {
		t.Fatalf("decodeGroups(%q) took %d, made %x; want %d, %x", text, ate, fast[:written], wantAte, slow[:wantMade])
	}
}
