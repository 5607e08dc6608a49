package jsonio

import (
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Writer builds one JSON text in one buffer. Inside an object every value follows a [Writer.Name]. The writer adds commas and colons. It
// does not check the nesting, which only its caller's code determines.
//
//	var w jsonio.Writer
//	w.Object()
//	w.Name("code"); w.Int(10000)
//	w.Texts("tags", []string{"a"})
//	w.End('}')        // {"code":10000,"tags":["a"]}
type Writer struct {
	buf   []byte
	comma bool // the next value needs a comma, because one precedes it

	next    int                     // length of buf at which bounds are checked next; 0: never
	limit   int                     // maximum number of bytes to keep
	grow    func(capacity int) bool // see Bound; nil: any capacity
	dropped int                     // number of bytes that were counted but not kept

	depth int   // open objects and arrays
	split bool  // whether sizes are recorded
	sizes []int // see Sizes
	begin int   // length of the text at the end of the last element in sizes
}

// Bytes returns the text so far. It is valid until the caller writes the next value.
func (w *Writer) Bytes() []byte { return w.buf }

// Len returns the length of the text so far, including bytes that were not kept.
func (w *Writer) Len() int { return w.dropped + len(w.buf) }

// boundStep is the number of bytes between two checks of bounds.
const boundStep = 32 << 10

// Bound limits the text that the writer keeps to limit bytes. If the text gets longer, the writer only counts its bytes: Len is above limit
// then, and Bytes is not the text. The writer calls grow with the buffer's capacity each time that has grown by [boundStep] or more. If
// grow returns false, the writer keeps no more bytes either. A nil grow allows any capacity.
func (w *Writer) Bound(limit int, grow func(capacity int) bool) {
	w.limit, w.grow, w.next = limit, grow, min(limit, boundStep)
}

// bound applies the bounds.
func (w *Writer) bound() {
	if w.dropped > 0 || w.Len() > w.limit || w.grow != nil && !w.grow(cap(w.buf)) {
		w.dropped += len(w.buf)
		if cap(w.buf) > 2*boundStep {
			w.buf = nil
		}
		w.buf, w.next = w.buf[:0], boundStep
		return
	}
	w.next = min(w.limit, max(cap(w.buf), len(w.buf)+boundStep))
}

// MeasureElements makes the writer record the size of each element of the arrays in the outermost object, and keep no bytes.
func (w *Writer) MeasureElements() { w.Bound(1, nil); w.split = true }

// Sizes returns the size in bytes of each element, counted after MeasureElements, that is an object or an array. The comma in front of it
// counts, too.
func (w *Writer) Sizes() []int { return w.sizes }

// Grow makes room for n more bytes, at most for those that the writer keeps.
func (w *Writer) Grow(n int) {
	if w.next > 0 {
		n = min(n, max(w.limit-w.Len(), 0))
	}
	w.buf = slices.Grow(w.buf, n)
}

func (w *Writer) sep() {
	if w.next > 0 && len(w.buf) > w.next {
		w.bound()
	}
	if w.comma {
		w.buf = append(w.buf, ',')
	}
	w.comma = true
}

// Object opens an object.
func (w *Writer) Object() {
	w.sep()
	w.buf = append(w.buf, '{')
	w.comma = false
	w.depth++
}

// Array opens an array.
func (w *Writer) Array() {
	w.sep()
	w.buf = append(w.buf, '[')
	w.comma = false
	if w.depth++; w.depth == 2 {
		w.begin = w.Len()
	}
}

// End closes the open object with '}' or the open array with ']'.
func (w *Writer) End(bracket byte) {
	w.buf = append(w.buf, bracket)
	w.comma = true
	if w.depth--; w.split && w.depth == 2 {
		w.sizes = append(w.sizes, w.Len()-w.begin)
		w.begin = w.Len()
	}
}

// Name writes a member's name.
func (w *Writer) Name(name string) {
	w.String(name)
	w.buf = append(w.buf, ':')
	w.comma = false
}

// String writes s, with U+FFFD for bytes that are not UTF-8.
func (w *Writer) String(s string) {
	w.sep()
	w.buf = appendString(w.buf, s)
}

// Text writes a member that is a string.
func (w *Writer) Text(name, text string) {
	w.Name(name)
	w.String(text)
}

// ObjectMember opens a member that is an object.
func (w *Writer) ObjectMember(name string) {
	w.Name(name)
	w.Object()
}

// List writes a member that is an array of n elements. write writes the element at index i.
func (w *Writer) List(name string, n int, write func(i int)) {
	w.Name(name)
	w.Array()
	for i := range n {
		write(i)
	}
	w.End(']')
}

// Objects writes a member that is an array of n objects. write writes the members of the object at index i.
func (w *Writer) Objects(name string, n int, write func(i int)) {
	w.List(name, n, func(i int) {
		w.Object()
		write(i)
		w.End('}')
	})
}

// Texts writes a member that is an array of strings.
func (w *Writer) Texts(name string, texts []string) {
	w.List(name, len(texts), func(i int) { w.String(texts[i]) })
}

// Floats writes a member that is an array of numbers.
func (w *Writer) Floats(name string, all []float32) {
	w.List(name, len(all), func(i int) { w.Float32(all[i]) })
}

// Int writes n.
func (w *Writer) Int(n int64) {
	w.sep()
	w.buf = strconv.AppendInt(w.buf, n, 10)
}

// Float writes the shortest decimal that reads back as x; null for NaN and infinities,
// which JSON cannot write.
func (w *Writer) Float(x float64) {
	w.sep()
	w.buf = appendFloat(w.buf, x, 64)
}

// Float32 writes the shortest decimal that reads back as x; null for NaN and infinities.
func (w *Writer) Float32(x float32) {
	w.sep()
	w.buf = appendFloat(w.buf, float64(x), 32)
}

// Bool writes true or false.
func (w *Writer) Bool(b bool) {
	w.sep()
	w.buf = strconv.AppendBool(w.buf, b)
}

// Null writes null.
func (w *Writer) Null() {
	w.sep()
	w.buf = append(w.buf, "null"...)
}

// Raw writes a value that is JSON already, such as [Value.Raw].
func (w *Writer) Raw(value []byte) {
	w.sep()
	w.buf = append(w.buf, value...)
}

func appendFloat(dst []byte, x float64, bits int) []byte {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return append(dst, "null"...)
	}
	format, abs := byte('f'), math.Abs(x)
	if abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, x, format, -1, bits)
}

// asItIs is true for the ASCII bytes that a string contains without an escape.
var asItIs = func() (t [256]bool) {
	for c := 0x20; c < 0x80; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

const hexDigits = "0123456789abcdef"

// plainEights returns the length, in whole groups of eight bytes, of the start of s before the first byte that is escaped or not ASCII; see
// plainGeneric. It is fast for ids and member names, which are most strings.
func plainEights(s string) int {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		v := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		if special(v) != 0 {
			break
		}
	}
	return i
}

// appendString appends s as a JSON string. Only quotes, backslashes, control characters
// and U+2028 and U+2029 (line ends to old JavaScript) are escaped.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := plainEights(s); i < len(s); {
		c := s[i]
		if asItIs[c] {
			i++
			continue
		}
		r, n := rune(c), 1
		if c >= 0x80 {
			r, n = utf8.DecodeRuneInString(s[i:])
			if (r != utf8.RuneError || n > 1) && r != '\u2028' && r != '\u2029' {
				i += n
				continue
			}
		}
		dst = append(dst, s[start:i]...)
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', c)
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r == '\r':
			dst = append(dst, '\\', 'r')
		case r == '\t':
			dst = append(dst, '\\', 't')
		case r < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
		case r == utf8.RuneError:
			dst = append(dst, "\ufffd"...)
		default:
			dst = append(dst, "\\u202"...)
			dst = append(dst, hexDigits[r&15])
		}
		i += n
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}
