package collection

import (
	"bufio"
	"errors"
	"io"
	"path"
	"strings"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// Endings of the names of lists.
var listEndings = []string{".jsonl", ".ndjson", ".csv", ".tsv"}

var errNotUTF8 = errors.New("the text is not UTF-8: save the list as UTF-8")

// isTable reports whether a list has a row for each input, and not a JSON object.
func isTable(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".csv", ".tsv":
		return true
	}
	return false
}

// decoded returns a list as UTF-8 without a byte order mark. Without a mark it is UTF-8; spreadsheets write UTF-16 with one.
func decoded(r io.Reader) io.Reader {
	return transform.NewReader(r, unicode.BOMOverride(transform.Nop))
}

// maxHeader is the maximum size of a table's first line that separator reads.
const maxHeader = 64 << 10

// separator returns the character that separates the cells of a table: the most frequent one of comma, semicolon and tab in its header.
func separator(table *bufio.Reader) rune {
	start, _ := table.Peek(maxHeader) // reading the rest returns the error again
	counts := map[byte]int{}
	isQuoted := false
	for _, c := range start {
		switch {
		case c == '"':
			isQuoted = !isQuoted
		case isQuoted:
		case c == '\n' || c == '\r':
			return mostFrequent(counts)
		default:
			counts[c]++
		}
	}
	return mostFrequent(counts)
}

func mostFrequent(counts map[byte]int) rune {
	most := byte(',')
	for _, c := range []byte(";\t") {
		if counts[c] > counts[most] {
			most = c
		}
	}
	return rune(most)
}
