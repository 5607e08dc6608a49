package jsonio

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func ExampleWriter() {
	var w Writer
	w.Object()
	w.Name("code")
	w.Int(10000)
	w.Name("hits")
	w.Array()
	w.Float32(0.1)
	w.Null()
	w.String("dög\n\"")
	w.Object()
	w.End('}')
	w.End(']')
	w.Name("ok")
	w.Bool(true)
	w.End('}')
	fmt.Println(string(w.Bytes()))
	// Output: {"code":10000,"hits":[0.1,null,"dög\n\"",{}],"ok":true}
}

func ExampleDoc_Parse() {
	var d Doc
	err := d.Parse([]byte(`{"inputs":[{"id":"a"},{"id":"b"}],"inputs":[]}`), Limits{})
	fmt.Println(err)
	err = d.Parse([]byte(`{"inputs":[{"id":"a"},{"id":"b"}]}`), Limits{})
	fmt.Println(err)
	for in := range d.Root().Get("inputs").Elems() {
		id, _ := in.Get("id").Str()
		fmt.Println(id)
	}
	// Output:
	// byte 34: duplicate name: "inputs"
	// <nil>
	// a
	// b
}

func TestWriterNumbers(t *testing.T) {
	tests := []struct {
		x    float64
		want string
	}{
		{0, "0"},
		{1, "1"},
		{-1.5, "-1.5"},
		{1e20, "100000000000000000000"},
		{1e21, "1e+21"},
		{1e-6, "0.000001"},
		{1e-7, "1e-07"},
		{math.MaxFloat64, "1.7976931348623157e+308"},
		{math.NaN(), "null"},
		{math.Inf(-1), "null"},
	}
	for _, tt := range tests {
		var w Writer
		w.Float(tt.x)
		if got := string(w.Bytes()); got != tt.want {
			t.Errorf("Float(%v) = %s, want %s", tt.x, got, tt.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float32().Draw(t, "x")
		var w Writer
		w.Float32(x)
		var back float32
		if err := json.Unmarshal(w.Bytes(), &back); err != nil || back != x {
			t.Fatalf("Float32(%v) wrote %s, read as %v, %v", x, w.Bytes(), back, err)
		}
	})
}

func TestWriterStrings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		text := appendString(nil, s)
		if !utf8.Valid(text) {
			t.Fatalf("AppendString(%q) = %q, which is not UTF-8", s, text)
		}
		var want string
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatalf("AppendString(%q) = %s: %v", s, text, err)
		}
		var d Doc
		if err := d.Parse(text, Limits{}); err != nil {
			t.Fatalf("AppendString(%q) = %s: %v", s, text, err)
		}
		got, err := d.Root().Str()
		if err != nil || got != want || utf8.ValidString(s) && got != s {
			t.Fatalf("%q came back as %q, %v", s, got, err)
		}
	})
	if got := string(appendString(nil, "\u2028\x01\xff\\")); got != `"\u2028\u0001`+"\ufffd"+`\\"` {
		t.Errorf("special characters are written %s", got)
	}
}
