package logtest

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/log"
)

// Rows returns rows with the operations of entries.
func Rows(entries []log.Entry) []byte {
	ops := make([]log.Op, len(entries))
	for i := range entries {
		ops[i] = entries[i].Op
	}
	return log.EncodeRows(ops)
}

// Bodies returns a pointer to an empty body of every kind.
func Bodies() []log.Body {
	return []log.Body{
		&log.InputCreate{}, &log.InputFetched{}, &log.InputLabels{}, &log.InputMeta{}, &log.InputGeo{},
		&log.InputDelete{}, &log.InputDeleteAll{}, &log.OutputsPatch{},
		&log.ConceptCreate{}, &log.ConceptName{}, &log.ConceptDelete{}, &log.ModelCreate{}, &log.ModelPatch{}, &log.ModelDelete{},
		&log.ModelDeleteAll{}, &log.VersionTrain{}, &log.VersionResult{}, &log.VersionDelete{},
		&log.WorkflowCreate{}, &log.WorkflowDelete{}, &log.Feedback{}, &log.Horizon{}, &log.NetworkSwitch{}, &log.Rules{},
		&log.AppCreate{}, &log.AppChange{}, &log.AppDelete{}, &log.KeyCreate{}, &log.KeyDelete{}, &log.ClientSet{}, &log.TokensRevoke{},
		&log.Refused{}, &log.EdgeCreate{}, &log.EdgeEnrolled{}, &log.EdgeRevoke{}, &log.SiteLease{}, &log.SitesSkip{}, &log.TokenKeys{},
	}
}

// Op draws an operation of any kind. The values of its fields are arbitrary and may be invalid.
func Op(t *rapid.T) log.Op { return OpOf(t, rapid.SampledFrom(Bodies()).Draw(t, "kind")) }

// OpOf draws an operation with the given body and draws the values of the body's fields.
func OpOf(t *rapid.T, body log.Body) log.Op {
	op := log.Op{By: rapid.String().Draw(t, "by"), Body: body}
	Fill(t, &op.Dot)
	op.At = log.HLC(rapid.Uint64().Draw(t, "at"))
	Fill(t, op.Body)
	if rapid.Bool().Draw(t, "changed clock") {
		op.Made = log.HLC(rapid.Uint64().Draw(t, "made"))
	}
	return op
}

// Fill draws a value for every field of the value that p points to. Stamps are not zero.
func Fill(t *rapid.T, p any) { fill(t, reflect.ValueOf(p).Elem()) }

func fill(t *rapid.T, v reflect.Value) {
	switch v.Interface().(type) {
	case log.Value, log.MetaAction:
		v.SetUint(rapid.Uint64Range(0, 2).Draw(t, "value"))
		return
	case log.Dot:
		v.Set(reflect.ValueOf(log.Dot{Writer: log.Writer(rapid.Uint64().Draw(t, "writer")), Seq: rapid.Uint64Max(log.MaxSeq).Draw(t, "seq")}))
		return
	case log.Stamp:
		at := log.HLC(rapid.Uint64Range(1, 1<<63).Draw(t, "at"))
		v.Set(reflect.ValueOf(log.Stamp{At: at, Writer: log.Writer(rapid.Uint64().Draw(t, "writer"))}))
		return
	case log.SeenEach:
		fillSlice(t, v)
		slices.SortStableFunc(v.Interface().(log.SeenEach), func(a, b log.SeenOf) int { return cmp.Compare(a.Write, b.Write) })
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "there") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem())
		}
	case reflect.Slice:
		fillSlice(t, v)
	case reflect.Array:
		if rapid.Bool().Draw(t, "set") {
			for i := range v.Len() {
				v.Index(i).SetUint(uint64(rapid.Byte().Draw(t, "byte")))
			}
		}
	case reflect.String:
		v.SetString(rapid.String().Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int:
		v.SetInt(rapid.Int64Range(0, 1<<31-1).Draw(t, "int"))
	case reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int"))
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(rapid.Uint64Max(1<<v.Type().Bits()-1).Draw(t, "uint"))
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Draw(t, "float"))
	case reflect.Float32:
		v.SetFloat(float64(rapid.Float32().Draw(t, "float")))
	default:
		panic(fmt.Sprintf("logtest: cannot make a %v", v.Type()))
	}
}

// fillSlice sets v to a drawn slice. Bytes are nil or at most 8, perhaps none. Any other slice is left as it is or has 1 to 3 elements.
func fillSlice(t *rapid.T, v reflect.Value) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		if rapid.Bool().Draw(t, "there") {
			v.SetBytes(append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "bytes")...))
		}
		return
	}
	if n := rapid.IntRange(0, 3).Draw(t, "len"); n > 0 {
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(t, v.Index(i))
		}
	}
}
