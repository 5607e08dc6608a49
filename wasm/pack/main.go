// Command pack compresses modules with brotli, as programs embed them:
//
//	go run ./wasm/pack [-quality N] FILE wasm/packed/FILE.br
//
// Quality 9 takes four seconds for the guest, and 11 a minute for a tenth less.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"

	"github.com/andybalholm/brotli"
)

func main() {
	quality := flag.Int("quality", 9, "quality of the compression, from 0 to 11")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: pack [-quality N] FILE FILE.br")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), flag.Arg(1), *quality); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(from, to string, quality int) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w := brotli.NewWriterOptions(&packed, brotli.WriterOptions{Quality: quality, LGWin: 22})
	if _, err := w.Write(data); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(to, packed.Bytes(), 0o644)
}
