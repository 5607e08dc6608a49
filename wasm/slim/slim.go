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
// The package reads the layout of Go 1.20 to 1.26 ([runtime._func], [runtime.pcHeader]) and rejects every other layout.
// The idea is that of the option -tiny of burrowers/garble, which patches the linker instead.
package slim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrModule is the error for a module that this package cannot read. Errors wrap it.
var ErrModule = errors.New("not a module of a Go linker that slim knows")

const header = "\x00asm\x01\x00\x00\x00"

// Numbers of sections.
const (
	customSection = 0
	dataSection   = 11
)

// Module returns the linked module without the tables of stack traces. It does not change linked.
func Module(linked []byte) ([]byte, error) {
	rest, ok := bytes.CutPrefix(linked, []byte(header))
	if !ok {
		return nil, fmt.Errorf("%w: it does not start as WebAssembly", ErrModule)
	}
	out, found := []byte(header), false
	for len(rest) > 0 {
		id := rest[0]
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || size > uint64(len(rest)-1-n) {
			return nil, fmt.Errorf("%w: section %d is cut off", ErrModule, id)
		}
		body := rest[1+n:][:size]
		rest = rest[1+n+int(size):]
		if id == dataSection {
			m, err := load(body)
			if err != nil {
				return nil, err
			}
			if err := m.clear(); err != nil {
				return nil, err
			}
			body, found = m.section(), true
		}
		out = append(out, id)
		out = binary.AppendUvarint(out, uint64(len(body)))
		out = append(out, body...)
	}
	if !found {
		return nil, fmt.Errorf("%w: it has no data", ErrModule)
	}
	return out, nil
}
