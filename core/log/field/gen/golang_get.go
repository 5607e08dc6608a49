package main

import (
	"fmt"
	"go/types"
)

// get writes the function getX, which reads the fields of message X.
func (g *golang) get(m *message) error {
	g.f("\nfunc get%s(d *field.Decoder, x *%s) {\n", g.title(m), g.of(m))
	for _, f := range m.fields {
		if f.has("once") {
			g.f("seen%d := false\n", f.number)
		}
	}
	g.f("for d.Next() {\nswitch d.Number {\n")
	for _, f := range m.fields {
		g.f("case %d:\n", f.number)
		if f.has("once") {
			g.f("if seen%d {\nd.Malformed(%q)\n}\nseen%[1]d = true\n", f.number, words(f.name)+" twice")
		}
		if err := g.getField(f, "x."+f.path); err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
	}
	if others := m.directives["others"]; others != nil {
		g.f("default:\nget%s(d, x)\n", others[0])
	} else if m.extra != "" || m.directives["kind"] != nil {
		g.f("default:\nd.Keep()\n")
	}
	g.f("}\n}\n")
	if m.extra != "" {
		g.f("x.%s = d.Extra()\n", m.extra)
	}
	if name, _, method := g.born(m); name != "" && method {
		g.f("%s := x.%[1]s()\n", name)
		g.fill(m, "x")
	}
	g.f("}\n")
	return nil
}

// fill writes the statements that set the fields with the option or. The encoder leaves such a field out if it equals the result of born.
func (g *golang) fill(m *message, x string) {
	for _, f := range m.fields {
		v := x + "." + f.path
		if or := f.options["or"]; or != "" {
			g.f("if %s == (%s{}) {\n%[1]s = %[3]s\n}\n", v, g.typ(f.typ), or)
			continue
		}
		if inner := g.within(f.typ); inner != nil && !f.has("func") {
			if name, _, inside := g.born(g.messages[inner]); name != "" && !inside {
				g.f("for i := range %s {\n", v)
				g.fill(g.messages[inner], v+"[i]")
				g.f("}\n")
			}
		}
	}
}

// getField writes the statements that read one field.
func (g *golang) getField(f *member, v string) error {
	if fn := f.options["func"]; fn != "" {
		g.f("%s = get%s(d)\n", v, fn)
		return nil
	}
	t := f.typ
	if isTime(t, "Time") || isTime(t, "Duration") {
		g.getTime(f, v)
		return nil
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return g.getBasic(f, v, t, u)
	case *types.Pointer:
		if m := g.within(u); m != nil {
			g.f("%s = &%s{}\n", v, g.typ(u.Elem()))
			g.getInner(g.messages[m], v)
			return nil
		}
		if f.has("nil") {
			g.f("text := d.Text()\n%s = &text\n", v)
			return nil
		}
		method := map[types.BasicKind]string{types.String: "Text", types.Uint64: "Uint", types.Bool: "Bool"}[u.Elem().(*types.Basic).Kind()]
		g.boxed[method+" "+g.typ(u.Elem())] = true
		g.f("%s = box%s(d)\n", v, method)
	case *types.Struct:
		g.f("%s = %s{}\n", v, g.typ(t))
		g.getInner(g.messages[g.within(t)], "&"+v)
	case *types.Array:
		g.f("d.Hash(%s[:])\n", v)
	case *types.Slice:
		return g.getSlice(f, v, u)
	}
	return nil
}

// getInner writes the statements that read the nested message m into the struct at address.
func (g *golang) getInner(m *message, address string) {
	g.f("at := d.Open()\nget%s(d, %s)\nd.Close(at)\n", g.title(m), address)
}

func (g *golang) getSlice(f *member, v string, u *types.Slice) error {
	if isByte(u.Elem()) {
		if f.has("copy") {
			g.imports["bytes"] = true
			g.f("%s = bytes.Clone(d.Raw())\n", v)
		} else {
			g.f("%s = d.Raw()\n", v)
		}
		return nil
	}
	if limit := f.options["max"]; limit != "" {
		limit, err := g.expression(f, limit)
		if err != nil {
			return err
		}
		g.f("if len(%s) >= %s {\nd.Malformed(\"list too long\")\nbreak\n}\n", v, limit)
	}
	last := fmt.Sprintf("%s[len(%[1]s)-1]", v)
	switch e := u.Elem().Underlying().(type) {
	case *types.Basic:
		g.f("%s = append(%[1]s, d.Text())\n", v)
	case *types.Struct:
		g.f("%s = append(%[1]s, %s{})\n", v, g.typ(u.Elem()))
		g.getInner(g.messages[g.within(u.Elem())], "&"+last)
	case *types.Array:
		g.f("%s = append(%[1]s, %s{})\nd.Hash(%s[:])\n", v, g.typ(u.Elem()), last)
	case *types.Slice:
		g.f("%s = append(%[1]s, d.Raw())\n", v)
	default:
		return fmt.Errorf("list of %s", e)
	}
	return nil
}

func (g *golang) getTime(f *member, v string) {
	g.imports["time"] = true
	switch {
	case isTime(f.typ, "Duration") && f.has("s"):
		g.f("%s = time.Duration(d.Uint32()) * time.Second\n", v)
	case isTime(f.typ, "Duration"):
		g.f("%s = time.Duration(d.Uint32()) * time.Millisecond\n", v)
	case f.has("ms"):
		g.f("%s = time.UnixMilli(int64(d.Uint())).UTC()\n", v)
	default:
		g.f("%s = time.Unix(0, int64(d.Fixed64()))\n", v)
	}
}

func (g *golang) getBasic(f *member, v string, t types.Type, u *types.Basic) error {
	call := map[types.BasicKind]string{
		types.String: "Text", types.Bool: "Bool", types.Uint64: "Uint", types.Uint32: "Uint32", types.Uint8: "Uint", types.Int: "Int", types.Int64: "Uint",
		types.Float32: "Float32", types.Float64: "Float",
	}[u.Kind()]
	if f.has("fixed") {
		call = "Fixed64"
	}
	result := map[string]types.BasicKind{"Uint": types.Uint64, "Fixed64": types.Uint64}[call]
	if result == types.Invalid {
		result = u.Kind()
	}
	limit := f.options["max"]
	if u.Kind() == types.Uint8 && limit == "" {
		g.imports["math"] = true
		limit = "math.MaxUint8"
	} else if limit != "" {
		var err error
		if limit, err = g.expression(f, limit); err != nil {
			return err
		}
		limit = types.Typ[result].Name() + "(" + limit + ")"
	}
	value := "d." + call + "()"
	if limit != "" {
		g.f("n := %s\nif n > %s {\nd.Malformed(%q)\nbreak\n}\n", value, limit, words(f.name))
		value = "n"
	}
	if t != types.Typ[result] {
		value = g.typ(t) + "(" + value + ")"
	}
	g.f("%s = %s\n", v, value)
	return nil
}
