// Command gen writes the codecs of messages, whose fields are the tagged fields of Go structs:
//
//	//field:message
//	type Push struct {
//		App   string   `wire:"1"`           // text
//		Site  log.Site `wire:"5"`           // uint, refused above 32 bits
//		For   []Behalf `wire:"7,max=MaxOps"` // a longer list is refused
//		Extra []byte   `wire:"*"`           // unknown fields, which are written behind the others
//	}
//
// A line in a package names the other files:
//
//	//go:generate go run ../../core/log/field/gen -tables ../README.md
//
// The command writes codec_gen.go: putPush and getPush, which write and read the fields, and encodePush and decodePush for
// the message with its version. It writes the tables of fields into a README, between the lines <!-- fields: Push --> and
// <!-- end -->, with the comments of the Go fields, and the codec of the pages in TypeScript. Bytes are those of
// [field.Encoder]: fields in ascending order of their numbers, zero ones left out.
//
// A directive in the comment of a type:
//
//	//field:message push    encodePush and decodePush; the name, if any, begins the text of errors
//	//field:fields put get only putPush, getPush or both, for a message that other code encodes
//	//field:kind 16        a body of an operation of this kind, see package log
//	//field:pages put get  the pages write it, read it or both
//	//field:others Rest    fields of other numbers are written by putRest(e, x) and read by getRest(d, x), which are by hand
//	//field:reserved 8 9   numbers that earlier versions used, which no field gets again
//
// An option after the number, behind a comma:
//
//	fixed      eight bytes, of a uint64
//	max=N      maximum length of a list, or maximum value of a number
//	always     a message within the message that is also written if it is zero
//	once       a message within the message that may not come twice
//	or=born    not written if the value equals the result of the message's method born
//	ms, s, ns  unit of a time or a duration; ns takes eight bytes
//	copy       a copy of the bytes; without it, they share the memory of the message
//	func=Name  written by putName(e, number, v), a struct by its address, and read by getName(d), which are by hand
//	type=…     type that the table shows for a func
//	nil        a pointer to a text: nil is absent, and an empty text is written
//	opaque     bytes for pages, which do not read the message
//	bytes      a text that pages may give as bytes
//	view       pages get a view of the message's memory instead of a copy
//
// The tag +N of a struct within a struct makes its fields those of the outer message: N is added to their numbers.
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

// generate returns the files for the package in a folder, by their paths. tables and pages are relative to the folder; empty:
// not written.
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
