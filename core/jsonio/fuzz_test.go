package jsonio

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"testing"
)

// FuzzParse compares Parse with encoding/json. If Parse accepts a text, encoding/json returns the same values. If Parse rejects a text,
// encoding/json rejects it too, unless Parse is stricter by design.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"inputs":[{"data":{"image":{"url":"http://a/b.jpg","crop":[0.1,0.2,0.9,1]}}}],"model":null}`,
		`{"a":1,"a":2}`, `{"a":{"a":{"a":[]}}}`, `["\u00e9\ud83d\ude00\"\\\/\b\f\n\r\t"]`, `"\ud800"`,
		`[0,-0,1.5,-1e+10,1E-7,01]`, "[\"\xff\"]", "  \t\r\n null ", `{"\u0061":1,"b":[true,false]}`,
		`"0123456789012345678901234567890123456789\\\\\\"`, "{\"é\":\"日本\"}", `[[[[`, `{"":""}`, "\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var d Doc
		err := d.Parse(data, Limits{})
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.UseNumber()
		var want any
		oracle := dec.Decode(&want)
		if oracle == nil {
			if _, tail := dec.Token(); !errors.Is(tail, io.EOF) {
				oracle = errors.New("more than one value")
			}
		}
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(data) {
				t.Fatalf("Parse = %v, want an Error with an offset in the text", err)
			}
			if oracle == nil && !stricter(err) {
				t.Fatalf("Parse refuses what encoding/json takes: %v", err)
			}
			return
		}
		if oracle != nil {
			t.Fatalf("Parse takes what encoding/json refuses: %v", oracle)
		}
		if got := toAny(d.Root()); !reflect.DeepEqual(got, want) {
			t.Fatalf("values %#v, want %#v", got, want)
		}
		var w Writer
		rewrite(&w, d.Root())
		var again Doc
		if err := again.Parse(w.Bytes(), Limits{}); err != nil {
			t.Fatalf("our own writing %q: %v", w.Bytes(), err)
		}
		if got := toAny(again.Root()); !reflect.DeepEqual(got, want) {
			t.Fatalf("written and read %#v, want %#v", got, want)
		}
	})
}

// rewrite writes a value with the Writer. Numbers keep their text.
func rewrite(w *Writer, v Value) {
	switch v.Kind() {
	case Array:
		w.Array()
		for e := range v.Elems() {
			rewrite(w, e)
		}
		w.End(']')
	case Object:
		w.Object()
		for name, e := range v.Members() {
			w.Name(name)
			rewrite(w, e)
		}
		w.End('}')
	case String:
		s, _ := v.Str()
		w.String(s)
	case True, False:
		b, _ := v.Bool()
		w.Bool(b)
	case Null:
		w.Null()
	default:
		w.Raw(v.Raw())
	}
}

// FuzzBase64 compares the decoder with encoding/base64 on texts that both accept, and the fast paths with the slow one.
func FuzzBase64(f *testing.F) {
	for _, seed := range []string{
		"", "QQ==", "QUI=", "QUJD", "QQ", "QUI", "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=", "QUJD\nREVG\r\nRw==", "Q", "=",
		"QQ=", "QQ==QQ==", "+/+/-_-_", "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVowMTIzNDU2Nzg5QUJDREVGR0hJSktMTU5P*UFFS",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		out, bad := appendBase64([]byte("kept"), text)
		if !bytes.HasPrefix(out, []byte("kept")) {
			t.Fatalf("the bytes before are %q", out)
		}
		out = out[4:]
		if bad >= 0 && (bad > len(text) || len(out) != 0) {
			t.Fatalf("bad byte %d of %d, %d bytes out", bad, len(text), len(out))
		}
		std := bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("-"), []byte("+")), []byte("_"), []byte("/"))
		for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding} {
			want := make([]byte, enc.DecodedLen(len(std)))
			n, err := enc.Decode(want, std)
			if err != nil {
				continue
			}
			if bad >= 0 {
				t.Fatalf("refused at %d what encoding/base64 takes", bad)
			}
			if !bytes.Equal(out, want[:n]) {
				t.Fatalf("decoded %x, want %x", out, want[:n])
			}
			return
		}
		if bad < 0 {
			t.Fatalf("took %q, which encoding/base64 refuses", text)
		}
	})
}
