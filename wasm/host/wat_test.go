package host

import (
	"encoding/binary"

	wapi "github.com/tetratelabs/wazero/api"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/host/kernels"
)

// Opcodes in the guests that tests assemble.
const (
	opUnreachable = 0x00
	opLoop        = 0x03
	opIf          = 0x04
	opEnd         = 0x0b
	opBrIf        = 0x0d
	opCall        = 0x10
	opDrop        = 0x1a
	opLocalGet    = 0x20
	opI32Load     = 0x28
	opI64Load     = 0x29
	opI32Load8U   = 0x2d
	opI32Store    = 0x36
	opI64Store    = 0x37
	opMemoryGrow  = 0x40
	opI32Const    = 0x41
	opI64Const    = 0x42
	opI32Eq       = 0x46
	opI32Ne       = 0x47
	opI64ExtendU  = 0xad
	blockVoid     = 0x40
)

// Addresses in the memory of the guests that tests assemble.
const (
	atAnswers = 1024
	atRequest = 16 << 10 // result of reserve: room for 32 KiB
)

// guest describes a module. Every export returns a constant answer, except those with a body
// in bodies.
type guest struct {
	bodies  map[string][]byte // by export: code, with opEnd
	imports []hostImport
	pages   uint32 // initial size of the memory
	version int32
	extra   []extra // more imports
	data    []segment
}

// segment is an initial part of the memory.
type segment struct {
	at    int
	bytes []byte
}

type extra struct{ module, name, params, results string }

func newGuest() *guest {
	return &guest{bodies: map[string][]byte{}, pages: 1, version: abi.Version}
}

func uleb(v uint64) []byte { return binary.AppendUvarint(nil, v) }

func sleb(v int64) (b []byte) {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func i32(v int32) []byte { return append([]byte{opI32Const}, sleb(int64(v))...) }
func i64(v int64) []byte { return append([]byte{opI64Const}, sleb(v)...) }

func code(parts ...any) (b []byte) {
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = append(b, byte(p))
		case []byte:
			b = append(b, p...)
		}
	}
	return b
}

func vec(items ...[]byte) []byte {
	b := uleb(uint64(len(items)))
	for _, it := range items {
		b = append(b, it...)
	}
	return b
}

func prefixLength(b []byte) []byte { return append(uleb(uint64(len(b))), b...) }

func section(id byte, b []byte) []byte { return append([]byte{id}, prefixLength(b)...) }

func typeOf(params, results []wapi.ValueType) []byte {
	return code(0x60, prefixLength(params), prefixLength(results))
}

// answers returns the constant answers of the exports.
func answers() map[string][]byte {
	return map[string][]byte{
		"open":    abi.AppendDone(nil, nil),
		"serve":   abi.AppendResponse(nil, &api.Response{Status: 200, Body: []byte("well")}),
		"resume":  abi.AppendResponse(nil, &api.Response{Status: 200, Body: []byte("resumed")}),
		"step":    (&abi.StepResult{}).Append(nil),
		"analyse": abi.AppendResult(nil, &abi.Result{}),
		"ask":     abi.AppendReply(nil, []byte("told"), nil),
		"sync":    (&abi.SyncResult{}).Append(nil),
	}
}

var exportNames = []string{"_initialize", "abi", "reserve", "open", "serve", "resume", "step", "analyse", "ask", "sync"}

// encode returns the binary module.
func (g *guest) encode() []byte {
	var kinds, imports, functions, exported, codes [][]byte
	for _, im := range g.imports {
		g.extra = append(g.extra, extra{"sightline", im.name, "", ""})
		imports = append(imports, code(prefixLength([]byte("sightline")), prefixLength([]byte(im.name)), 0x00, uleb(uint64(len(kinds)))))
		kinds = append(kinds, typeOf(im.params, im.results))
	}
	for _, e := range g.extra[len(g.imports):] {
		imports = append(imports, code(prefixLength([]byte(e.module)), prefixLength([]byte(e.name)), 0x00, uleb(uint64(len(kinds)))))
		kinds = append(kinds, typeOf(kernels.Types(e.params), kernels.Types(e.results)))
	}
	data := vec()
	var segments [][]byte
	at := atAnswers
	replies := answers()
	for i, name := range exportNames {
		body := g.bodies[name]
		if body == nil {
			switch name {
			case "_initialize":
				body = code(opEnd)
			case "abi":
				body = code(i32(g.version), opEnd)
			case "reserve":
				body = code(i32(atRequest), opEnd)
			default:
				body = code(i64(int64(abi.Answer(uint32(at), uint32(len(replies[name]))))), opEnd)
				segments = append(segments, code(0x00, i32(int32(at)), opEnd, prefixLength(replies[name])))
				at += len(replies[name])
			}
		}
		functions = append(functions, uleb(uint64(len(kinds))))
		kinds = append(kinds, typeOf(exports[name].params, exports[name].results))
		exported = append(exported, code(prefixLength([]byte(name)), 0x00, uleb(uint64(len(imports)+i))))
		codes = append(codes, prefixLength(code(0x00, body)))
	}
	exported = append(exported, code(prefixLength([]byte("memory")), 0x02, 0x00))
	for _, d := range g.data {
		segments = append(segments, code(0x00, i32(int32(d.at)), opEnd, prefixLength(d.bytes)))
	}
	if segments != nil {
		data = vec(segments...)
	}
	return code(
		[]byte("\x00asm\x01\x00\x00\x00"),
		section(1, vec(kinds...)),
		section(2, vec(imports...)),
		section(3, vec(functions...)),
		section(5, code(0x01, 0x00, uleb(uint64(g.pages)))),
		section(7, vec(exported...)),
		section(10, vec(codes...)),
		section(11, data),
	)
}

// Bodies of hostile exports of the type (i32) → i64.
var (
	trap = code(opUnreachable, opEnd)
	// bomb grows its memory until memory.grow fails, and then traps.
	bomb = code(
		opLoop, blockVoid,
		i32(1), opMemoryGrow, 0, i32(-1), opI32Ne, opBrIf, 0,
		opEnd, opUnreachable, opEnd)
	wildAnswer = code(i64(int64(abi.Answer(0xfffffff0, 64))), opEnd)
	noAnswer   = code(i64(0), opEnd)
	wildRoom   = code(i32(-8), opEnd)
)

// recursion returns a body with which an export calls itself without end.
func (g *guest) recursion(name string) []byte {
	n := len(g.imports) + len(g.extra)
	for i, e := range exportNames {
		if e == name {
			n += i
		}
	}
	return code(opLocalGet, 0, opCall, uleb(uint64(n)), opEnd)
}

// caller returns a body that calls the import whose number is in the first byte of the host's input, with the parameters that follow in 8
// bytes each, and answers with the import's result.
func (g *guest) caller() []byte {
	var b []byte
	for i, im := range g.imports {
		b = code(b, i32(atRequest), opI32Load8U, 0, 0, i32(int32(i)), opI32Eq, opIf, blockVoid)
		if len(im.results) > 0 {
			b = code(b, i32(atAnswers-8)) // address of the result
		}
		for p, kind := range im.params {
			load := opI32Load
			if kind == wapi.ValueTypeI64 {
				load = opI64Load
			}
			b = code(b, i32(int32(atRequest+8+8*p)), load, 0, 0)
		}
		b = code(b, opCall, uleb(uint64(i)))
		switch {
		case len(im.results) == 0:
		case im.results[0] == wapi.ValueTypeI64:
			b = code(b, opI64Store, 0, 0)
		default:
			b = code(b, opI64ExtendU, opI64Store, 0, 0)
		}
		b = code(b, opEnd)
	}
	return code(b, i64(int64(abi.Answer(atAnswers-8, 8))), opEnd)
}
