// Command gen generates the codecs of messages. The fields of a message are the tagged fields of a Go struct:
//
//	//field:message
//	type Push struct {
//		App   string   `wire:"1"`           // text
//		Level uint32   `wire:"5"`           // uint; decoding fails above 32 bits
//		For   []Behalf `wire:"7,max=MaxOps"` // decoding fails for a longer list
//		Extra []byte   `wire:"*"`           // unknown fields, which are written after the others
//	}
//
// A line in a package names the files to write in addition to codec_gen.go:
//
//	//go:generate go run ../../core/log/field/gen -tables ../README.md
//
// The command writes codec_gen.go: putPush and getPush, which write and read the fields, and encodePush and decodePush for the message with
// its version. It writes the tables of fields into a README, between the lines <!-- fields: Push --> and <!-- end -->, with the comments of
// the Go fields. It also writes the TypeScript codec of the pages. The bytes are those of [field.Encoder]: fields in ascending order of
// their numbers, without zero fields.
//
// Directives in the comment of a type:
//
//	//field:message push    encodePush and decodePush; the optional name is the prefix of error texts
//	//field:fields put get only putPush, getPush or both, for a message that other code encodes
//	//field:kind 16        a body of an operation of this kind, see package log
//	//field:pages put get  the pages write the message, read it or both
//	//field:others Rest    the handwritten putRest(e, x) writes the fields with other numbers, and getRest(d, x) reads them
//	//field:reserved 8 9   numbers that earlier versions used, which no field may use again
//
// Options after the number, separated by commas:
//
//	fixed      eight bytes, of a uint64
//	max=N      maximum length of a list, or maximum value of a number
//	always     a nested message that is also written if it is zero
//	once       a nested message that may not come twice
//	or=born    not written if the value equals the result of the message's method born
//	ms, s, ns  unit of a time or a duration; ns takes eight bytes
//	copy       a copy of the bytes; without it, they share the memory of the message
//	func=Name  the handwritten putName(e, number, v) writes the value, a struct by its address, and getName(d) reads it
//	type=…     type that the table shows for a func
//	nil        a pointer to a text: nil is absent, and an empty text is written
//	opaque     bytes for pages, which do not read the message
//	bytes      a text that pages may give as bytes
//	view       pages get a view of the message's memory instead of a copy
//
// The tag +N of a nested struct makes its fields fields of the outer message: N is added to their numbers.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	tables := flag.String("tables", "", "README whose tables are written")
	pages := flag.String("pages", "", "TypeScript file that is written")
	flag.Parse()
	files, err := generate(".", *tables, *pages)
	if err == nil {
		for name, data := range files {
			if err = os.WriteFile(name, data, 0o644); err != nil {
				break
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// goFile is the name of the generated file of a package.
const goFile = "codec_gen.go"

// generate returns the generated files for the package in a folder, by path. tables and pages are relative to the folder. If one is empty,
// that file is not generated.
func generate(dir, tables, pages string) (map[string][]byte, error) {
	p, err := load(dir)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	if files[filepath.Join(dir, goFile)], err = p.golang(); err != nil {
		return nil, err
	}
	if pages != "" {
		if files[filepath.Join(dir, pages)], err = p.typescript(); err != nil {
			return nil, err
		}
	}
	if tables != "" {
		name := filepath.Join(dir, tables)
		page, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if files[name], err = p.tables(page); err != nil {
			return nil, fmt.Errorf("%s: %w", tables, err)
		}
	}
	return files, nil
}
