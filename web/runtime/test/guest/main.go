//go:build wasip1

// Command guest is a module with exports of the real module. It calls the host's imports as a test commands, so that the test can check
// them. The argument of ask is a command word, a space and the word's argument; see do.
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"
	"unsafe"
)

//go:wasmimport sightline now
func now() int64

//go:wasmimport sightline random
func random(dst unsafe.Pointer, n uint32)

//go:wasmimport sightline log
func log(level int32, p unsafe.Pointer, n uint32)

//go:wasmimport sightline bundle
func bundle(name unsafe.Pointer, n uint32, dst unsafe.Pointer, room uint32) int64

//go:wasmimport sightline older
func older(base, name unsafe.Pointer, n uint32, dst unsafe.Pointer, room uint32) int64

//go:wasmimport sightline file_size
func fileSize(file int32) int64

//go:wasmimport sightline file_read
func fileRead(file int32, offset int64, dst unsafe.Pointer, n uint32) int32

//go:wasmimport sightline file_write
func fileWrite(file int32, offset int64, src unsafe.Pointer, n uint32) int32

//go:wasmimport sightline file_truncate
func fileTruncate(file int32, size int64) int32

//go:wasmimport sightline file_sync
func fileSync(file int32) int32

//go:wasmimport sightline kv_get
func kvGet(snapshot int32, key unsafe.Pointer, n uint32, dst unsafe.Pointer, room uint32) int64

//go:wasmimport sightline kv_commit
func kvCommit(batch unsafe.Pointer, n uint32) int32

//go:wasmimport kernel quote
func quote(src unsafe.Pointer, n uint32) int32

//go:wasmimport kernel base64
func base64(dst unsafe.Pointer, room uint32, src unsafe.Pointer, n uint32) int64

//go:wasmimport kernel axpy
func axpy(y unsafe.Pointer, f float32, x unsafe.Pointer, n uint32)

//go:wasmimport kernel decode
func decode(src unsafe.Pointer, n uint32, view, dst unsafe.Pointer, room uint32, info unsafe.Pointer) int64

//go:wasmimport kernel gemv_u16
func gemv(handle uint32, dst, a, bias unsafe.Pointer)

func main() {}

var (
	in, out []byte
	version int32 = 1
)

//go:wasmexport abi
func abi() int32 { return version }

//go:wasmexport reserve
func reserve(n int32) unsafe.Pointer {
	if int(n) > cap(in) {
		in = make([]byte, n)
	}
	in = in[:cap(in)]
	return unsafe.Pointer(unsafe.SliceData(in))
}

func answer(p []byte) int64 {
	out = append(out[:0], p...)
	runtime.Gosched()
	return int64(uintptr(unsafe.Pointer(unsafe.SliceData(out))))<<32 | int64(len(out))
}

//go:wasmexport open
func open(n int32) int64 {
	if bytes.Contains(in[:n], []byte("refuse")) {
		return answer([]byte{1, 0x0a, 6, 8, 14, 0x12, 2, 'n', 'o'})
	}
	return answer([]byte{1})
}

//go:wasmexport ask
func ask(n int32) int64 {
	word, rest, _ := bytes.Cut(in[:n], []byte(" "))
	return answer(do(string(word), rest))
}

var (
	kept  [][]byte
	small = make([]byte, 8)
)

func do(word string, p []byte) []byte {
	at := func(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }
	number, _ := strconv.Atoi(string(p))
	switch word {
	case "echo":
		return p
	case "now":
		return fmt.Append(nil, now())
	case "time":
		return fmt.Append(nil, time.Now().UnixMilli())
	case "sleep":
		began := time.Now()
		time.Sleep(20 * time.Millisecond)
		return fmt.Append(nil, time.Since(began) >= 20*time.Millisecond)
	case "args":
		return fmt.Append(nil, len(os.Args), len(os.Environ()))
	case "random":
		b := make([]byte, number)
		random(at(b), uint32(len(b)))
		return b
	case "log":
		log(int32(number), at(p), uint32(len(p)))
	case "print":
		fmt.Printf("one %s\ntw", p)
		fmt.Printf("o\n")
	case "bundle":
		n := bundle(at(p), uint32(len(p)), at(small), uint32(len(small)))
		if n <= int64(len(small)) {
			return fmt.Appendf(nil, "%d %s", n, small[:max(n, 0)])
		}
		b := make([]byte, n)
		again := bundle(at(p), uint32(len(p)), at(b), uint32(len(b)))
		return fmt.Appendf(nil, "%d %s", again, b)
	case "older":
		return fmt.Append(nil, older(at(make([]byte, 32)), at(p), uint32(len(p)), at(small), 8))
	case "size":
		return fmt.Append(nil, fileSize(int32(number)))
	case "read": // file offset length, each four bytes
		b := make([]byte, u32(p, 2))
		code := fileRead(int32(u32(p, 0)), int64(u32(p, 1)), at(b), uint32(len(b)))
		return fmt.Appendf(nil, "%d %s", code, b)
	case "write":
		return fmt.Append(nil, fileWrite(int32(u32(p, 0)), int64(u32(p, 1)), at(p[8:]), uint32(len(p)-8)))
	case "truncate":
		return fmt.Append(nil, fileTruncate(int32(u32(p, 0)), int64(u32(p, 1))))
	case "sync":
		return fmt.Append(nil, fileSync(int32(number)))
	case "lent": // functions that this host does not provide
		return fmt.Append(nil, kvGet(0, at(p), uint32(len(p)), at(small), 8), kvCommit(at(p), uint32(len(p))))
	case "grow": // MiB
		kept = append(kept, make([]byte, number<<20))
		return fmt.Append(nil, len(kept[len(kept)-1]))
	case "quote":
		return fmt.Append(nil, quote(at(p), uint32(len(p))))
	case "base64":
		return fmt.Append(nil, base64(at(small), 8, at(p), uint32(len(p))))
	case "axpy":
		x, y := []float32{1, 2}, []float32{10, 20}
		axpy(unsafe.Pointer(&y[0]), 0.5, unsafe.Pointer(&x[0]), 2)
		return fmt.Append(nil, y)
	case "decode":
		return fmt.Append(nil, decode(at(p), uint32(len(p)), nil, at(small), 8, at(small)))
	case "gemv":
		gemv(1, nil, nil, nil)
	case "wild": // a range outside the memory
		fileRead(0, 0, unsafe.Add(at(small), 1<<30), 1<<20)
	case "panic":
		panic("as asked")
	case "exit":
		os.Exit(3)
	case "loop": // calls of a kernel
		for range number {
			quote(at(p), 1)
		}
	}
	return nil
}

func u32(p []byte, i int) uint32 { return binary.LittleEndian.Uint32(p[4*i:]) }
