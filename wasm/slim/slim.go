// Package slim removes from a linked Go module the tables that only stack traces read.
//
//	go build ──▶ linked module ──Module──▶ wasm/dist/guest.wasm
//	             the tables of lines, files, inlined calls and arguments become zeros,
//	             which the data section leaves out
//
// Go's linker has no option for this: -s -w removes DWARF and names of symbols, but not the tables of the runtime. They are a fifth of the
// module that pages download. A stack trace of the result names only functions that were not inlined, and shows ?:0 for a file and line.
// The tables that the collector, growing stacks and deferred calls read remain as they are.
//
// The package reads the layout of Go 1.20 to 1.26 ([runtime._func], [runtime.pcHeader]) and rejects every other layout and release. The
// build then uses the linked module, and TestModule fails. For a newer release, compare both structures, internal/abi.PCDATA_* and
// internal/abi.FUNCDATA_* with the constants of tables.go, and raise the constant newest.
// The idea is that of the option -tiny of burrowers/garble, which patches the linker instead.
package slim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

// ErrModule is the error for a module that this package cannot read. Errors wrap it.
var ErrModule = errors.New("not a module of a Go linker that slim knows")

const header = "\x00asm\x01\x00\x00\x00"

// Numbers of sections.
const (
	customSection = 0
	dataSection   = 11
)

// newest is the minor version of the last release of Go 1 with tables that this package reads.
const newest = 26

// section is a section of a module.
type section struct {
	id   byte
	body []byte
}

// Module returns the linked module without the tables of stack traces. It does not change linked.
func Module(linked []byte) ([]byte, error) {
	sections, err := split(linked)
	if err != nil {
		return nil, err
	}
	if err := checkRelease(sections); err != nil {
		return nil, err
	}
	out, found := []byte(header), false
	for _, s := range sections {
		if s.id == dataSection {
			m, err := load(s.body)
			if err != nil {
				return nil, err
			}
			if err := m.clear(); err != nil {
				return nil, err
			}
			s.body, found = m.section(), true
		}
		out = append(out, s.id)
		out = binary.AppendUvarint(out, uint64(len(s.body)))
		out = append(out, s.body...)
	}
	if !found {
		return nil, fmt.Errorf("%w: it has no data", ErrModule)
	}
	return out, nil
}

// split returns the sections of a module.
func split(module []byte) (sections []section, err error) {
	rest, ok := bytes.CutPrefix(module, []byte(header))
	if !ok {
		return nil, fmt.Errorf("%w: it does not start as WebAssembly", ErrModule)
	}
	for len(rest) > 0 {
		id := rest[0]
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || size > uint64(len(rest)-1-n) {
			return nil, fmt.Errorf("%w: section %d is cut off", ErrModule, id)
		}
		sections = append(sections, section{id, rest[1+n:][:size]})
		rest = rest[1+n+int(size):]
	}
	return sections, nil
}

// release matches a release of Go in the section of a module that names its producers.
var release = regexp.MustCompile(`\bgo1\.([0-9]+)`)

// checkRelease returns an error if a newer release of Go than the known ones linked the module, since its tables may look like the known ones
// and differ.
func checkRelease(sections []section) error {
	for _, s := range sections {
		if s.id != customSection || !bytes.HasPrefix(s.body, []byte("\x09producers")) {
			continue
		}
		if m := release.FindSubmatch(s.body); m != nil {
			minor, err := strconv.Atoi(string(m[1]))
			if err != nil || minor > newest {
				return fmt.Errorf("%w: %s linked it, and the newest known release is go1.%d", ErrModule, m[0], newest)
			}
			return nil
		}
	}
	return fmt.Errorf("%w: it does not name its release of Go", ErrModule)
}
