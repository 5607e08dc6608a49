// Package lines shows a stream of the sync protocol to people: each message as one line of JSON,
// for curl and for whoever looks for a fault. Programs read the frames.
//
//	{"type":"entries","epoch":"8f0c…","from":1200,"to":1202,"chain":"51aa…","entries":[
//	  {"seq":1201,"site":2,"sequence":41,"at":"2026-11-22T08:00:00.000Z","by":"key","op":"input_labels","body":{…}}, …]}
//	{"type":"checkpoint","to":1202,"head":1202,"stable":1202,"now":"2026-11-22T08:00:01.000Z"}
//
// Names are those of package wire in lower case, bytes are hexadecimal digits, what is JSON stands as it
// is, and what is zero is left out. It is a view and no second protocol: it cannot be sent back.
package lines

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/sync/wire"
)

// ContentType is the media type of what a Writer writes.
const ContentType = "application/x-ndjson"

// Writer turns frames into lines.
type Writer struct {
	w   io.Writer
	in  wire.Reader
	buf []byte
}

// NewWriter returns a Writer over w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write takes frames, whole or in pieces, and writes the messages that are whole. Errors: those of
// package wire, and of the writer below.
func (w *Writer) Write(p []byte) (int, error) {
	_, _ = w.in.Write(p)
	for {
		f, ok, err := w.in.Next()
		if err != nil {
			return 0, err
		}
		if !ok {
			return len(p), nil
		}
		if w.buf, err = Append(w.buf[:0], f); err != nil {
			return 0, err
		}
		if _, err := w.w.Write(w.buf); err != nil {
			return 0, err
		}
	}
}

// Flush flushes the writer below, if it can be flushed.
func (w *Writer) Flush() error {
	if f, ok := w.w.(interface{ Flush() error }); ok {
		return f.Flush()
	}
	return nil
}

// Append appends a message as a line. The error is that of its decoder.
func Append(dst []byte, f wire.Frame) ([]byte, error) {
	m, err := decode(f)
	if err != nil {
		return dst, fmt.Errorf("%v: %w", f.Type, err)
	}
	dst = append(dst, `{"type":`...)
	dst = quoted(dst, f.Type.String())
	if m != nil {
		dst = fields(dst, reflect.ValueOf(m).Elem())
	} else {
		dst = append(dst, fmt.Sprintf(`,"bytes":%d`, len(f.Body))...)
	}
	return append(dst, "}\n"...), nil
}

// entries is a message of entries with them in it.
type entries struct {
	Epoch    log.Epoch
	From, To uint64
	Chain    log.Chain
	Entries  []entry
}

// entry is an operation at its place.
type entry struct {
	Seq      uint64
	Site     log.Site
	Sequence uint64
	At       log.HLC
	By       string
	Op       string
	Body     log.Body
}

// decode reads a message; nil: its type is not known.
func decode(f wire.Frame) (any, error) {
	switch f.Type {
	case wire.TypeDerived:
		return pointer(wire.DecodeDerived(f.Body))
	case wire.TypeObject:
		return pointer(wire.DecodeObject(f.Body))
	case wire.TypeRegister:
		return pointer(wire.DecodeRegister(f.Body))
	case wire.TypeEntries:
		return decodeEntries(f.Body)
	case wire.TypeCheckpoint:
		return pointer(wire.DecodeCheckpoint(f.Body))
	case wire.TypeKeepalive:
		return pointer(wire.DecodeKeepalive(f.Body))
	case wire.TypeEnd:
		return pointer(wire.DecodeEnd(f.Body))
	}
	return nil, nil
}

func pointer[M any](m M, err error) (any, error) { return &m, err }

func decodeEntries(body []byte) (any, error) {
	m, err := wire.DecodeEntriesFrame(body)
	if err != nil {
		return nil, err
	}
	list, err := wire.DecodeEntries(m.Block, m.From)
	if err != nil {
		return nil, err
	}
	out := &entries{Epoch: m.Epoch, From: m.From, To: m.To, Chain: m.Chain}
	for i := range list {
		o := &list[i].Op
		kind := strings.TrimPrefix(fmt.Sprintf("%T", o.Body), "*log.")
		out.Entries = append(out.Entries, entry{
			Seq: list[i].Seq, Site: o.Dot.Site, Sequence: o.Dot.Seq, At: o.At, By: o.By, Op: lower(kind), Body: o.Body,
		})
	}
	return out, nil
}

// fields appends the members of a struct that are not zero, each after a comma.
func fields(dst []byte, v reflect.Value) []byte {
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			continue
		}
		dst = append(quoted(append(dst, ','), lower(v.Type().Field(i).Name)), ':')
		dst = value(dst, v.Field(i))
	}
	return dst
}

// value appends any value.
func value(dst []byte, v reflect.Value) []byte {
	switch x := v.Interface().(type) {
	case log.HLC:
		return quoted(dst, stamp(x))
	case wire.Millis:
		return quoted(dst, x.Time().Format(millis))
	case wire.Why:
		return quoted(dst, x.String())
	case []byte:
		return raw(dst, x)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return append(dst, "null"...)
		}
		return value(dst, v.Elem())
	case reflect.Struct:
		members := fields(nil, v)
		return append(append(append(dst, '{'), bytes.TrimPrefix(members, []byte{','})...), '}')
	case reflect.Array:
		b := make([]byte, v.Len())
		reflect.Copy(reflect.ValueOf(b), v)
		return quoted(dst, hex.EncodeToString(b))
	case reflect.Slice:
		dst = append(dst, '[')
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = value(dst, v.Index(i))
		}
		return append(dst, ']')
	case reflect.String:
		return quoted(dst, v.String())
	case reflect.Bool:
		return strconv.AppendBool(dst, v.Bool())
	case reflect.Float32, reflect.Float64:
		if f := v.Float(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return strconv.AppendFloat(dst, f, 'g', -1, v.Type().Bits())
		}
		return append(dst, "null"...)
	case reflect.Int:
		return strconv.AppendInt(dst, v.Int(), 10)
	}
	return strconv.AppendUint(dst, v.Uint(), 10)
}

// millis is how times are written: in UTC and whole milliseconds.
const millis = "2006-01-02T15:04:05.000Z07:00"

// stamp is a clock: its time, and its tick where it has one.
func stamp(h log.HLC) string {
	at := h.Time().Truncate(time.Millisecond).Format(millis)
	if tick := h & 0xffff; tick > 0 {
		at += fmt.Sprintf("+%d", tick)
	}
	return at
}

// raw appends bytes: JSON as it is, else as hexadecimal digits.
func raw(dst, p []byte) []byte {
	var line bytes.Buffer
	if len(p) > 1 && json.Compact(&line, p) == nil {
		return append(dst, line.Bytes()...)
	}
	return quoted(dst, hex.EncodeToString(p))
}

// quoted appends a string.
func quoted(dst []byte, s string) []byte {
	b, _ := json.Marshal(s) // a string always can be
	return append(dst, b...)
}

// lower is a name of Go in lower case: "InputCreate" is "input_create", "ID" is "id".
func lower(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
