package logtest

import (
	"fmt"
	"reflect"
	"time"
	"unsafe"

	"github.com/sightline-dev/sightline/core/log"
)

// Set sets every field of the value that p points to, including unexported ones, except [log.Op].Made. It always sets the same values:
// numbers count up, and texts and bytes contain these numbers.
func Set(p any) {
	n := uint64(0)
	set(reflect.ValueOf(p).Elem(), "", &n)
}

// later returns an encoded field, a varint, with a number that this version does not use (500).
func later(n uint64) []byte { return []byte{0xa0, 0x1f, byte(n)} }

func set(v reflect.Value, name string, n *uint64) {
	if !v.CanSet() {
		v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
	}
	if name == "Made" { // most operations have none
		return
	}
	*n++
	switch x := v.Addr().Interface().(type) {
	case *log.Value:
		*x = log.True
		return
	case *log.MetaAction:
		*x = log.MetaAppend
		return
	case *log.Extra:
		*x = log.Extra{Op: later(*n), Body: later(*n + 1)}
		return
	case *time.Time:
		*x = time.UnixMilli(1_790_000_000_000 + int64(*n))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			set(v.Field(i), v.Type().Field(i).Name, n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		set(v.Elem(), "", n)
	case reflect.Slice:
		switch {
		case name == "Extra":
			v.SetBytes(later(*n))
		case v.Type().Elem().Kind() == reflect.Uint8:
			v.SetBytes(fmt.Appendf(nil, "bytes %d", *n))
		default:
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			set(v.Index(0), "", n)
			set(v.Index(1), "", n)
		}
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(*n + uint64(i))
		}
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		v.SetInt(int64(*n))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(*n)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	}
}
