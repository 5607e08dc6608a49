package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// program is a package with the packages of its module that it imports.
type program struct {
	*types.Package
	source
	messages map[*types.TypeName]*message
	roots    []*message // messages with a directive, in the order of their names
}

// message is a struct with tagged fields.
type message struct {
	*types.TypeName
	fields     []*member
	extra      string              // Go field for unknown fields; empty: none
	directives map[string][]string // with their arguments
}

// member is one field of a message.
type member struct {
	number   int
	path     string // Go field within the message, such as Cursor.Epoch
	name     string
	typ      types.Type
	declared *types.Package // package whose names the options use
	options  map[string]string
	doc      string
}

func (f *member) has(option string) bool {
	_, ok := f.options[option]
	return ok
}

// source reads the types of packages: those of the module, without the bodies of functions, and the few of the standard library that
// structs need.
type source struct {
	fset     *token.FileSet
	root     string // folder of the module
	module   string
	packages map[string]*types.Package
	fields   map[token.Pos]*ast.Field // by the position of their name
	docs     map[token.Pos]*ast.CommentGroup
}

func load(dir string) (*program, error) {
	p := &program{messages: map[*types.TypeName]*message{}}
	p.source = source{
		fset: token.NewFileSet(), packages: standard(),
		fields: map[token.Pos]*ast.Field{}, docs: map[token.Pos]*ast.CommentGroup{},
	}
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	at := root
	for ; ; root = filepath.Dir(root) {
		data, err := os.ReadFile(filepath.Join(root, "go.mod"))
		if err == nil {
			line, _, _ := strings.Cut(string(data), "\n")
			p.root, p.module = root, strings.TrimSpace(strings.TrimPrefix(line, "module "))
			break
		}
		if root == filepath.Dir(root) {
			return nil, fmt.Errorf("no go.mod above %s", dir)
		}
	}
	rel, err := filepath.Rel(root, at)
	if err != nil {
		return nil, err
	}
	if p.Package, err = p.Import(path.Join(p.module, filepath.ToSlash(rel))); err != nil {
		return nil, err
	}
	for _, name := range p.Scope().Names() {
		t, ok := p.Scope().Lookup(name).(*types.TypeName)
		if !ok || len(directives(p.docs[t.Pos()])) == 0 {
			continue
		}
		m, err := p.message(t)
		if err != nil {
			return nil, err
		}
		p.roots = append(p.roots, m)
	}
	return p, nil
}

// directives returns the lines //field:… of a comment by their names, with their arguments.
func directives(doc *ast.CommentGroup) map[string][]string {
	is := map[string][]string{}
	if doc == nil {
		return is
	}
	for _, c := range doc.List {
		if text, ok := strings.CutPrefix(c.Text, "//field:"); ok {
			words := strings.Fields(text)
			is[words[0]] = append([]string{}, words[1:]...)
		}
	}
	return is
}

// standard returns the parts of the standard library that structs need.
func standard() map[string]*types.Package {
	sum := types.NewPackage("crypto/sha256", "sha256")
	sum.Scope().Insert(types.NewConst(token.NoPos, sum, "Size", types.Typ[types.UntypedInt], constant.MakeInt64(sha256.Size)))
	sum.MarkComplete()
	p := types.NewPackage("time", "time")
	for name, of := range map[string]types.Type{"Time": types.NewStruct(nil, nil), "Duration": types.Typ[types.Int64]} {
		t := types.NewTypeName(token.NoPos, p, name, nil)
		types.NewNamed(t, of, nil)
		p.Scope().Insert(t)
	}
	p.MarkComplete()
	return map[string]*types.Package{"time": p, "crypto/sha256": sum}
}

// Import implements [types.Importer].
func (s *source) Import(name string) (*types.Package, error) {
	if p, ok := s.packages[name]; ok {
		return p, nil
	}
	rel, ours := strings.CutPrefix(name, s.module)
	if !ours {
		p := types.NewPackage(name, path.Base(name))
		p.MarkComplete()
		s.packages[name] = p
		return p, nil
	}
	dir := filepath.Join(s.root, filepath.FromSlash(rel))
	listed, err := build.Default.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, file := range listed.GoFiles {
		if file == goFile {
			continue
		}
		f, err := parser.ParseFile(s.fset, filepath.Join(dir, file), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
		s.comments(f)
	}
	// Generated functions and other modules are missing. The structs do not need them.
	config := types.Config{Importer: s, IgnoreFuncBodies: true, Error: func(error) {}}
	p, _ := config.Check(name, s.fset, files, nil)
	if p == nil {
		return nil, fmt.Errorf("package %s cannot be read", name)
	}
	s.packages[name] = p
	return p, nil
}

// comments stores the comments of types and fields.
func (s *source) comments(f *ast.File) {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.TYPE {
			continue
		}
		for _, spec := range g.Specs {
			t := spec.(*ast.TypeSpec)
			if s.docs[t.Name.Pos()] = t.Doc; t.Doc == nil && len(g.Specs) == 1 {
				s.docs[t.Name.Pos()] = g.Doc
			}
			if of, ok := t.Type.(*ast.StructType); ok {
				for _, field := range of.Fields.List {
					for _, name := range field.Names {
						s.fields[name.Pos()] = field
					}
				}
			}
		}
	}
}

// doc returns the comment of a field in one line.
func (s *source) doc(v *types.Var) string {
	f := s.fields[v.Pos()]
	if f == nil {
		return ""
	}
	return strings.Join(strings.Fields(f.Doc.Text()+" "+f.Comment.Text()), " ")
}

// message returns the message of a struct.
func (p *program) message(t *types.TypeName) (*message, error) {
	if m, ok := p.messages[t]; ok {
		return m, nil
	}
	m := &message{TypeName: t, directives: directives(p.docs[t.Pos()])}
	p.messages[t] = m
	of, ok := t.Type().Underlying().(*types.Struct)
	if !ok {
		return nil, fmt.Errorf("%s: not a struct", t.Name())
	}
	if err := p.members(m, of, t.Pkg(), "", 0); err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name(), err)
	}
	slices.SortStableFunc(m.fields, func(a, b *member) int { return a.number - b.number })
	for i, f := range m.fields {
		if slices.Contains(m.directives["reserved"], strconv.Itoa(f.number)) {
			return nil, fmt.Errorf("%s: %s has the number of an earlier field", t.Name(), f.path)
		}
		if i > 0 && f.number == m.fields[i-1].number {
			return nil, fmt.Errorf("%s: %s and %s have the same number", t.Name(), m.fields[i-1].path, f.path)
		}
		if inner := p.within(f.typ); inner != nil && !f.has("func") {
			if _, err := p.message(inner); err != nil {
				return nil, err
			}
		}
	}
	return m, nil
}

// members adds the tagged fields of a struct to a message. more is added to their numbers.
func (p *program) members(m *message, of *types.Struct, declared *types.Package, prefix string, more int) error {
	for i := range of.NumFields() {
		v := of.Field(i)
		tag := reflect.StructTag(of.Tag(i)).Get("wire")
		if tag == "" {
			continue
		}
		number, rest, _ := strings.Cut(tag, ",")
		if number == "*" {
			m.extra = prefix + v.Name()
			continue
		}
		if plus, inline := strings.CutPrefix(number, "+"); inline {
			n, err := strconv.Atoi(plus)
			inner, ok := v.Type().Underlying().(*types.Struct)
			if err != nil || !ok {
				return fmt.Errorf("%s: tag %q", v.Name(), tag)
			}
			from := declared
			if named, ok := types.Unalias(v.Type()).(*types.Named); ok {
				from = named.Obj().Pkg()
			}
			if err := p.members(m, inner, from, prefix+v.Name()+".", more+n); err != nil {
				return err
			}
			continue
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 {
			return fmt.Errorf("%s: tag %q", v.Name(), tag)
		}
		f := &member{
			number: n + more, path: prefix + v.Name(), name: v.Name(), typ: v.Type(), declared: declared,
			options: map[string]string{}, doc: p.doc(v),
		}
		for option := range strings.SplitSeq(rest, ",") {
			name, value, _ := strings.Cut(option, "=")
			if rest != "" && !slices.Contains(options, name) {
				return fmt.Errorf("%s: option %q is not known", v.Name(), name)
			}
			f.options[name] = value
		}
		m.fields = append(m.fields, f)
	}
	if len(m.fields) == 0 && prefix == "" && of.NumFields() > 0 {
		return errors.New("no tagged field")
	}
	return nil
}

var options = []string{"fixed", "max", "always", "once", "or", "ms", "s", "ns", "copy", "func", "type", "opaque", "view", "nil", "bytes"}

// within returns the struct that is the nested message of a field: by value, by pointer or in a list; nil: none.
func (p *program) within(t types.Type) *types.TypeName {
	switch u := types.Unalias(t).(type) {
	case *types.Pointer:
		return p.within(u.Elem())
	case *types.Slice:
		return p.within(u.Elem())
	case *types.Named:
		if s, ok := u.Underlying().(*types.Slice); ok {
			return p.within(s.Elem())
		}
		if _, ok := u.Underlying().(*types.Struct); ok && !isTime(u, "Time") {
			return u.Obj()
		}
	}
	return nil
}

func isTime(t types.Type, name string) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "time" && n.Obj().Name() == name
}

// reachableMessages returns the wanted messages and their nested messages, sorted by name. hold reports whether to follow a field.
func (p *program) reachableMessages(wanted func(m *message) bool, hold func(f *member) bool) []*message {
	seen := map[*message]bool{}
	var visit func(m *message)
	visit = func(m *message) {
		if seen[m] {
			return
		}
		seen[m] = true
		for _, f := range m.fields {
			if inner := p.within(f.typ); inner != nil && !f.has("func") && hold(f) {
				visit(p.messages[inner])
			}
		}
	}
	for _, m := range p.roots {
		if wanted(m) {
			visit(m)
		}
	}
	return p.sortMessages(seen)
}

// sortMessages returns messages sorted by name.
func (p *program) sortMessages(all map[*message]bool) []*message {
	return slices.SortedFunc(maps.Keys(all), func(a, b *message) int { return strings.Compare(p.title(a), p.title(b)) })
}

// title returns the name of a message for use in function names. For another package, the name of that package comes first.
func (p *program) title(m *message) string {
	if m.Pkg() != p.Package {
		return upper(m.Pkg().Name()) + upper(m.Name())
	}
	return upper(m.Name())
}
