package main

import (
	"bytes"
	"fmt"
	"go/types"
	"slices"
	"strings"
)

// typescript returns the codec of the pages: the messages with the directive pages, and their nested messages. The fields of a message that
// pages write are optional. If pages only read it, numbers, texts and lists are always set.
func (p *program) typescript() ([]byte, error) {
	direction := func(of string) func(m *message) bool {
		return func(m *message) bool { return slices.Contains(m.directives["pages"], of) }
	}
	hold := func(f *member) bool { return !f.has("opaque") }
	puts, gets := p.reachableMessages(direction("put"), hold), p.reachableMessages(direction("get"), hold)
	all := slices.Concat(puts, gets)
	slices.SortFunc(all, func(a, b *message) int { return strings.Compare(p.title(a), p.title(b)) })
	t := &typescript{program: p}
	t.WriteString(header + "// The envelopes of wasm/README.md.\n\nimport ")
	if len(puts) > 0 {
		t.WriteString("{ type Reader, Writer } from './envelope.ts';\n")
	} else {
		t.WriteString("type { Reader } from './envelope.ts';\n")
	}
	for _, m := range slices.Compact(all) {
		put := slices.Contains(puts, m)
		for _, f := range m.fields {
			if of, _ := list(f); !readable(f, of, put) {
				return nil, fmt.Errorf("%s: %s: pages have no %s", m.Name(), f.path, f.typ)
			}
		}
		t.face(m, put)
		if put {
			t.put(m)
		}
		if slices.Contains(gets, m) {
			t.get(m, put)
		}
	}
	for _, m := range gets {
		if slices.ContainsFunc(m.fields, func(f *member) bool { return isTime(f.typ, "Time") && f.has("ns") }) {
			t.f("\n/** Milliseconds of a time in nanoseconds. */\nconst millis = (r: Reader): number => Number(r.fixed64() / 1_000_000n);\n")
			break
		}
	}
	return bytes.ReplaceAll(t.Bytes(), []byte("\t"), []byte("  ")), nil
}

type typescript struct {
	*program
	bytes.Buffer
}

func (t *typescript) f(format string, args ...any) { fmt.Fprintf(t, format, args...) }

// camel returns a Go name in the form of TypeScript: publicAppId of PublicAppID.
func camel(name string) string {
	parts := split(name)
	for i := 1; i < len(parts); i++ {
		parts[i] = upper(parts[i])
	}
	return strings.Join(parts, "")
}

// shape is a field in TypeScript: its type, the method of Reader and Writer, and the value of a missing field.
type shape struct{ typ, call, zero string }

func (t *typescript) shape(f *member, of types.Type) shape {
	octets := shape{"Uint8Array<ArrayBuffer>", "raw", ""}
	if f.has("view") {
		octets.typ = "Uint8Array"
	}
	if f.has("func") || f.has("opaque") {
		return octets
	}
	if m := t.within(of); m != nil {
		return shape{t.title(t.messages[m]), "", ""}
	}
	if f.has("nil") {
		return shape{"string", "text", ""}
	}
	if isTime(of, "Time") && f.has("ns") {
		return shape{"number", "millis", "0"}
	}
	switch u := of.Underlying().(type) {
	case *types.Basic:
		switch {
		case f.has("bytes"):
			return shape{"string | Uint8Array", "text", ""}
		case u.Info()&types.IsString != 0:
			return shape{"string", "text", "''"}
		case u.Info()&types.IsBoolean != 0:
			return shape{"boolean", "bool", "false"}
		}
		return shape{"number", "uint", "0"}
	case *types.Struct: // a time in milliseconds
		return shape{"number", "uint", "0"}
	}
	return octets
}

// readable reports whether pages read a field, and write it if put.
func readable(f *member, of types.Type, put bool) bool {
	if isTime(of, "Time") {
		return !put || f.has("ms")
	}
	switch u := of.Underlying().(type) {
	case *types.Basic:
		return u.Info()&types.IsFloat == 0 && !f.has("fixed")
	case *types.Pointer:
		if f.has("nil") {
			return true
		}
		_, inner := u.Elem().Underlying().(*types.Struct)
		return inner
	}
	return true
}

// list returns the type of a list's elements, or else the field's own type and false.
func list(f *member) (types.Type, bool) {
	s, ok := f.typ.Underlying().(*types.Slice)
	if !ok || isByte(s.Elem()) || f.has("func") {
		return f.typ, false
	}
	return s.Elem(), true
}

func upper(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

// face writes the interface of a message.
func (t *typescript) face(m *message, put bool) {
	t.f("\nexport interface %s {\n", t.title(m))
	for _, f := range m.fields {
		of, many := list(f)
		s := t.shape(f, of)
		if put {
			s.typ = strings.TrimSuffix(s.typ, "<ArrayBuffer>")
		}
		if many {
			s.typ, s.zero = s.typ+"[]", "[]"
		}
		mark := ""
		if put || s.zero == "" {
			mark = "?"
		}
		if f.doc != "" {
			t.f("\t/** %s */\n", f.doc)
		}
		if put {
			s.typ += " | undefined"
		}
		t.f("\t%s%s: %s;\n", camel(f.name), mark, s.typ)
	}
	t.f("}\n")
}

// put writes the function that writes a message.
func (t *typescript) put(m *message) {
	name := t.title(m)
	t.f("\nexport function put%s(w: Writer, x: %[1]s): Writer {\n", name)
	for _, f := range m.fields {
		of, many := list(f)
		s := t.shape(f, of)
		v := "x." + camel(f.name)
		one := func(v string) string {
			if s.call == "" {
				return fmt.Sprintf("w.message(%d, put%s(new Writer(), %s))", f.number, s.typ, v)
			}
			return fmt.Sprintf("w.%s(%d, %s)", s.call, f.number, v)
		}
		switch {
		case many && s.call == "raw":
			t.f("\tfor (const v of %s ?? []) w.message(%d, v);\n", v, f.number)
		case many && s.call == "text":
			t.f("\tfor (const v of %s ?? []) w.element(%d, v);\n", v, f.number)
		case many:
			t.f("\tfor (const v of %s ?? []) %s;\n", v, one("v"))
		case f.has("nil"):
			t.f("\tif (%s !== undefined) w.element(%d, %[1]s);\n", v, f.number)
		case s.call == "":
			t.f("\tif (%s) %s;\n", v, one(v))
		default:
			t.f("\t%s;\n", one(v))
		}
	}
	t.f("\treturn w;\n}\n")
}

// get writes the function that reads a message. put reports whether pages also write it.
func (t *typescript) get(m *message, put bool) {
	name := t.title(m)
	var zeros []string
	for _, f := range m.fields {
		of, many := list(f)
		s := t.shape(f, of)
		if many {
			s.zero = "[]"
		}
		if !put && s.zero != "" {
			zeros = append(zeros, camel(f.name)+": "+s.zero)
		}
	}
	t.f("\nexport function get%s(r: Reader): %[1]s {\n\tconst x: %[1]s = {%s};\n\twhile (r.next())\n\t\tswitch (r.number) {\n", name, strings.Join(zeros, ", "))
	for _, f := range m.fields {
		of, many := list(f)
		s := t.shape(f, of)
		v, value := "x."+camel(f.name), "r."+s.call+"()"
		switch s.call {
		case "":
			value = "get" + s.typ + "(r.message())"
		case "millis":
			value = "millis(r)"
		case "raw":
			if !f.has("view") {
				value += ".slice()"
			}
		}
		t.f("\t\t\tcase %d:\n", f.number)
		switch {
		case many && put:
			t.f("\t\t\t\t(%s ??= []).push(%s);\n", v, value)
		case many:
			t.f("\t\t\t\t%s.push(%s);\n", v, value)
		default:
			t.f("\t\t\t\t%s = %s;\n", v, value)
		}
		t.f("\t\t\t\tbreak;\n")
	}
	t.f("\t\t}\n\treturn x;\n}\n")
}
