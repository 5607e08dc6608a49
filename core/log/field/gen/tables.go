package main

import (
	"bytes"
	"fmt"
	"go/types"
	"regexp"
	"strings"
)

var marker = regexp.MustCompile(`(?s)(<!-- fields: (\w+) -->\n).*?(<!-- end -->\n)`)

// tables returns page with new tables. It replaces the lines between <!-- fields: NAME --> and <!-- end --> by the table of message NAME.
func (p *program) tables(page []byte) ([]byte, error) {
	shown := map[string]bool{} // names of the messages with a table on the page
	for _, found := range marker.FindAllSubmatch(page, -1) {
		shown[string(found[2])] = true
	}
	var failed error
	out := marker.ReplaceAllFunc(page, func(old []byte) []byte {
		parts := marker.FindSubmatch(old)
		m := p.findMessage(string(parts[2]))
		if m == nil {
			failed = fmt.Errorf("no message %s", parts[2])
			return old
		}
		var b bytes.Buffer
		b.Write(parts[1])
		fmt.Fprintf(&b, "| %s | | |\n|---|---|---|\n", upper(m.Name()))
		for _, f := range m.fields {
			_, many := list(f)
			fmt.Fprintf(&b, "| %d %s%s | %s | %s |\n", f.number, snake(f.name), star(many), p.tableType(f, shown), strings.ReplaceAll(f.doc, "|", `\|`))
		}
		b.Write(parts[3])
		return bytes.ReplaceAll(b.Bytes(), []byte("|  |"), []byte("| |"))
	})
	return out, failed
}

// findMessage returns the message whose struct has the given name, or nil. A struct of the program's package comes first.
func (p *program) findMessage(name string) *message {
	for t, m := range p.messages {
		if t.Name() == name && (t.Pkg() == p.Package || p.Scope().Lookup(name) == nil) {
			return m
		}
	}
	return nil
}

func snake(name string) string { return strings.Join(split(name), "_") }

func star(many bool) string {
	if many {
		return "*"
	}
	return ""
}

// tableType returns the type of a field for a table. For a nested message it returns the message's name if tables contains that name, and
// the message's fields otherwise.
func (p *program) tableType(f *member, tables map[string]bool) string {
	if f.has("type") {
		return f.options["type"]
	}
	of, _ := list(f)
	if m := p.within(of); m != nil && !f.has("func") {
		if tables[m.Name()] {
			return "{" + upper(m.Name()) + "}"
		}
		var all []string
		for _, x := range p.messages[m].fields {
			_, many := list(x)
			all = append(all, fmt.Sprintf("%d %s%s %s", x.number, snake(x.name), star(many), p.tableType(x, tables)))
		}
		return "{" + strings.Join(all, ", ") + "}"
	}
	if f.has("fixed") || f.has("ns") {
		return "fixed"
	}
	switch u := of.Underlying().(type) {
	case *types.Pointer:
		if f.has("nil") {
			return "text"
		}
		return "{1 value " + p.tableType(&member{typ: u.Elem(), options: map[string]string{}}, tables) + "}"
	case *types.Array:
		return fmt.Sprintf("bytes (%d)", u.Len())
	case *types.Slice:
		return "bytes"
	case *types.Basic:
		switch {
		case u.Info()&types.IsString != 0:
			return "text"
		case u.Info()&types.IsBoolean != 0:
			return "bool"
		case u.Kind() == types.Float64:
			return "double"
		case u.Kind() == types.Float32:
			return "float"
		}
	}
	return "uint"
}
