package arm64

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// field places one number of an instruction's text in its word. It reports whether the number fits.
type field func(v int) (bits uint32, ok bool)

// at returns the field of a number of width bits, counted in units, at a bit of the word.
func at(bit, width, unit int) field {
	return func(v int) (uint32, bool) {
		return uint32(v/unit) << bit, v >= 0 && v%unit == 0 && v/unit < 1<<width
	}
}

// signed returns the field of a signed number of width bits, counted in units, at a bit of the word.
func signed(bit, width, unit int) field {
	return func(v int) (uint32, bool) {
		half := 1 << (width - 1)
		return uint32(v/unit) & (1<<width - 1) << bit, v%unit == 0 && v/unit >= -half && v/unit < half
	}
}

// plus is at for a number to which the encoding adds an offset.
func plus(bit, width, offset int) field {
	return func(v int) (uint32, bool) {
		return uint32(v+offset) << bit, v >= 0 && v+offset < 1<<width
	}
}

// minus returns the field of a right shift of 32-bit elements. The encoding subtracts the distance from an offset.
func minus(bit, offset int) field {
	return func(v int) (uint32, bool) { return uint32(offset-v) << bit, v > 0 && v <= 32 }
}

// same is the field of a number that the text repeats.
func same(int) (uint32, bool) { return 0, true }

// next is the field of a later register of a list. The encoding holds only the first register.
var next field = same

// lane4 encodes the lane of an element of four bytes: bit 21, then bit 11 above it.
func lane4(v int) (uint32, bool) { return uint32(v&1)<<21 | uint32(v>>1)<<11, v >= 0 && v < 4 }

// lane2 encodes the lane of an element of two bytes: bit 20, then bit 21, then bit 11.
func lane2(v int) (uint32, bool) {
	return uint32(v&1)<<20 | uint32(v>>1&1)<<21 | uint32(v>>2)<<11, v >= 0 && v < 8
}

// stored4 encodes the lane of a stored element of four bytes: bit 12, then bit 30.
func stored4(v int) (uint32, bool) { return uint32(v&1)<<12 | uint32(v>>1)<<30, v >= 0 && v < 4 }

// byteImm encodes the immediate of MOVI.
func byteImm(v int) (uint32, bool) {
	return uint32(v>>5)<<16 | uint32(v&31)<<5, v >= 0 && v < 256
}

var (
	rd   = at(0, 5, 1)
	rn   = at(5, 5, 1)
	rm   = at(16, 5, 1)
	rm16 = at(16, 4, 1) // of 16 registers
	ra   = at(10, 5, 1) // the second register of a pair
)

// form is an instruction without its numbers, and the fields for them.
type form struct {
	base   uint32
	fields []field
}

// three returns an instruction on three registers.
func three(base uint32) form { return form{base, []field{rd, rn, rm}} }

// two returns an instruction on two registers.
func two(base uint32) form { return form{base, []field{rd, rn}} }

// four returns a load or store of four registers.
func four(base uint32, rest ...field) form {
	return form{base, append([]field{rd, next, next, next, rn}, rest...)}
}

// forms are the known instructions. In their text # means a number.
var forms = map[string]form{
	"movi v#.16b, ##": {0x4f00e400, []field{rd, byteImm}},
	"dup v#.16b, w#":  two(0x4e010c00),
	"dup v#.8h, w#":   two(0x4e020c00),
	"dup v#.4s, w#":   two(0x4e040c00),

	"sdot v#.4s, v#.16b, v#.16b":   three(0x4e809400),
	"sdot v#.4s, v#.16b, v#.4b[#]": {0x4f80e000, []field{rd, rn, rm, lane4}},
	"usmmla v#.4s, v#.16b, v#.16b": three(0x4e80ac00),

	"smull v#.8h, v#.8b, v#.8b":    three(0x0e20c000),
	"smull2 v#.8h, v#.16b, v#.16b": three(0x4e20c000),
	"smlal v#.8h, v#.8b, v#.8b":    three(0x0e208000),
	"smlal2 v#.8h, v#.16b, v#.16b": three(0x4e208000),
	"smlal v#.4s, v#.4h, v#.4h":    three(0x0e608000),
	"smlal2 v#.4s, v#.8h, v#.8h":   three(0x4e608000),
	"smlal v#.4s, v#.4h, v#.h[#]":  {0x0f402000, []field{rd, rn, rm16, lane2}},
	"smlal2 v#.4s, v#.8h, v#.h[#]": {0x4f402000, []field{rd, rn, rm16, lane2}},
	"sadalp v#.4s, v#.8h":          two(0x4e606800),
	"smull v#.4s, v#.4h, v#.4h":    three(0x0e60c000),
	"smull2 v#.4s, v#.8h, v#.8h":   three(0x4e60c000),
	"sadalp v#.2d, v#.4s":          two(0x4ea06800),
	"add v#.2d, v#.2d, v#.2d":      three(0x4ee08400),
	"addp d#, v#.2d":               two(0x5ef1b800),
	"addv s#, v#.4s":               two(0x4eb1b800),
	"umaxv s#, v#.4s":              two(0x6eb0a800),
	"cmeq v#.4s, v#.4s, v#.4s":     three(0x6ea08c00),
	"orr v#.16b, v#.16b, v#.16b":   three(0x4ea01c00),
	"fmul v#.4s, v#.4s, v#.s[#]":   {0x4f809000, []field{rd, rn, rm, lane4}},
	"fmla v#.4s, v#.4s, v#.4s":     three(0x4e20cc00),
	"fmla v#.4s, v#.4s, v#.s[#]":   {0x4f801000, []field{rd, rn, rm, lane4}},
	"fmax v#.4s, v#.4s, v#.4s":     three(0x4e20f400),
	"fmin v#.4s, v#.4s, v#.4s":     three(0x4ea0f400),
	"fsub v#.4s, v#.4s, v#.4s":     three(0x4ea0d400),
	"fdiv v#.4s, v#.4s, v#.4s":     three(0x6e20fc00),
	"fmaxnm v#.4s, v#.4s, v#.4s":   three(0x4e20c400),
	"fminnm v#.4s, v#.4s, v#.4s":   three(0x4ea0c400),
	"fcmgt v#.4s, v#.4s, v#.4s":    three(0x6ea0e400),
	"bit v#.16b, v#.16b, v#.16b":   three(0x6ea01c00),
	"fneg v#.4s, v#.4s":            two(0x6ea0f800),
	"fcvtzs v#.4s, v#.4s":          two(0x4ea1b800),
	"ld1r {v#.4s}, [x#], ##":       {0x4ddfc800, []field{rd, rn, same}},
	"mul v#.4s, v#.4s, v#.4s":      three(0x4ea09c00),
	"mul v#.4s, v#.4s, v#.s[#]":    {0x4f808000, []field{rd, rn, rm, lane4}},
	"mla v#.4s, v#.4s, v#.s[#]":    {0x6f800000, []field{rd, rn, rm, lane4}},
	"mls v#.4s, v#.4s, v#.s[#]":    {0x6f804000, []field{rd, rn, rm, lane4}},
	"sub v#.4s, v#.4s, v#.4s":      three(0x6ea08400),
	"sshr v#.4s, v#.4s, ##":        {0x4f000400, []field{rd, rn, minus(16, 64)}},
	"trn1 v#.4s, v#.4s, v#.4s":     three(0x4e802800),
	"trn2 v#.4s, v#.4s, v#.4s":     three(0x4e806800),
	"dup v#.4s, v#.s[#]":           {0x4e040400, []field{rd, rn, at(19, 2, 1)}},
	"sqxtn v#.8b, v#.8h":           two(0x0e214800),
	"str s#, [x#]":                 {0xbd000000, []field{rd, rn}},
	"stp q#, q#, [x#], ##":         {0xac800000, []field{rd, ra, rn, signed(15, 7, 16)}},
	"fadd v#.2s, v#.2s, v#.2s":     three(0x0e20d400),
	"faddp s#, v#.2s":              two(0x7e30d800),
	"addp v#.4s, v#.4s, v#.4s":     three(0x4ea0bc00),
	"add v#.8h, v#.8h, v#.8h":      three(0x4e608400),
	"sub v#.8h, v#.8h, v#.8h":      three(0x6e608400),
	"shl v#.8h, v#.8h, ##":         {0x4f005400, []field{rd, rn, plus(16, 5, 16)}},
	"add v#.4s, v#.4s, v#.4s":      three(0x4ea08400),
	"shl v#.4s, v#.4s, ##":         {0x4f005400, []field{rd, rn, plus(16, 6, 32)}},
	"eor v#.16b, v#.16b, v#.16b":   three(0x6e201c00),

	"scvtf v#.4s, v#.4s":       two(0x4e21d800),
	"fcvtns v#.4s, v#.4s":      two(0x4e21a800),
	"fmul v#.4s, v#.4s, v#.4s": three(0x6e20dc00),
	"fadd v#.4s, v#.4s, v#.4s": three(0x4e20d400),

	"sqxtn v#.4h, v#.4s":          two(0x0e614800),
	"sqxtn2 v#.8h, v#.4s":         two(0x4e614800),
	"sqxtun v#.8b, v#.8h":         two(0x2e212800),
	"sqxtun2 v#.16b, v#.8h":       two(0x6e212800),
	"sqadd v#.8h, v#.8h, v#.8h":   three(0x4e600c00),
	"umax v#.16b, v#.16b, v#.16b": three(0x6e206400),
	"umin v#.16b, v#.16b, v#.16b": three(0x6e206c00),

	"ushll v#.8h, v#.8b, ##":       {0x2f08a400, []field{rd, rn, plus(16, 4, 8)}},
	"ushll2 v#.8h, v#.16b, ##":     {0x6f08a400, []field{rd, rn, plus(16, 4, 8)}},
	"ushll v#.4s, v#.4h, ##":       {0x2f10a400, []field{rd, rn, plus(16, 5, 16)}},
	"ushll2 v#.4s, v#.8h, ##":      {0x6f10a400, []field{rd, rn, plus(16, 5, 16)}},
	"mla v#.4s, v#.4s, v#.4s":      three(0x4ea09400),
	"sshll v#.8h, v#.8b, ##":       {0x0f08a400, []field{rd, rn, plus(16, 4, 8)}},
	"sshll2 v#.8h, v#.16b, ##":     {0x4f08a400, []field{rd, rn, plus(16, 4, 8)}},
	"sshll v#.4s, v#.4h, ##":       {0x0f10a400, []field{rd, rn, plus(16, 5, 16)}},
	"sshll2 v#.4s, v#.8h, ##":      {0x4f10a400, []field{rd, rn, plus(16, 5, 16)}},
	"usubl v#.8h, v#.8b, v#.8b":    three(0x2e202000),
	"usubl2 v#.8h, v#.16b, v#.16b": three(0x6e202000),
	"uaddw v#.8h, v#.8h, v#.8b":    three(0x2e201000),
	"uaddw2 v#.8h, v#.8h, v#.16b":  three(0x6e201000),
	"uaddw v#.4s, v#.4s, v#.4h":    three(0x2e601000),
	"uaddw2 v#.4s, v#.4s, v#.8h":   three(0x6e601000),

	"zip1 v#.16b, v#.16b, v#.16b": three(0x4e003800),
	"zip2 v#.16b, v#.16b, v#.16b": three(0x4e007800),
	"zip1 v#.8h, v#.8h, v#.8h":    three(0x4e403800),
	"zip2 v#.8h, v#.8h, v#.8h":    three(0x4e407800),
	"zip1 v#.2d, v#.2d, v#.2d":    three(0x4ec03800),
	"zip2 v#.2d, v#.2d, v#.2d":    three(0x4ec07800),

	"ldr s#, [x#], ##":       {0xbc400400, []field{rd, rn, signed(12, 9, 1)}},
	"ldr d#, [x#], ##":       {0xfc400400, []field{rd, rn, signed(12, 9, 1)}},
	"ldr q#, [x#], ##":       {0x3cc00400, []field{rd, rn, signed(12, 9, 1)}},
	"ldr q#, [x#]":           {0x3dc00000, []field{rd, rn}},
	"ldr q#, [x#, ##]":       {0x3dc00000, []field{rd, rn, at(10, 12, 16)}},
	"ldr q#, [x#, x#]":       {0x3ce06800, []field{rd, rn, rm}},
	"str d#, [x#]":           {0xfd000000, []field{rd, rn}},
	"str q#, [x#]":           {0x3d800000, []field{rd, rn}},
	"str s#, [x#], ##":       {0xbc000400, []field{rd, rn, signed(12, 9, 1)}},
	"str q#, [x#], ##":       {0x3c800400, []field{rd, rn, signed(12, 9, 1)}},
	"ldp q#, q#, [x#]":       {0xad400000, []field{rd, ra, rn}},
	"ldp q#, q#, [x#], ##":   {0xacc00000, []field{rd, ra, rn, signed(15, 7, 16)}},
	"stp q#, q#, [x#]":       {0xad000000, []field{rd, ra, rn}},
	"ld1r {v#.2d}, [x#], ##": {0x4ddfcc00, []field{rd, rn, same}},
	"ld1r {v#.4s}, [x#]":     {0x4d40c800, []field{rd, rn}},

	"ld1 {v#.16b}, [x#], x#":                         {0x4cc07000, []field{rd, rn, rm}},
	"st1 {v#.16b}, [x#], x#":                         {0x4c807000, []field{rd, rn, rm}},
	"ld1 {v#.8b}, [x#], x#":                          {0x0cc07000, []field{rd, rn, rm}},
	"st1 {v#.s}[#], [x#], x#":                        {0x0d808000, []field{rd, stored4, rn, rm}},
	"ld1 {v#.16b, v#.16b, v#.16b, v#.16b}, [x#]":     four(0x4c402000),
	"ld1 {v#.16b, v#.16b, v#.16b, v#.16b}, [x#], ##": four(0x4cdf2000, same),
	"ld1 {v#.16b, v#.16b, v#.16b, v#.16b}, [x#], x#": four(0x4cc02000, rm),
	"st1 {v#.16b, v#.16b, v#.16b, v#.16b}, [x#]":     four(0x4c002000),
	"st1 {v#.16b, v#.16b, v#.16b, v#.16b}, [x#], x#": four(0x4c802000, rm),
	"st1 {v#.16b, v#.16b, v#.16b, v#.16b}, [x#], ##": four(0x4c9f2000, same),
}

// numbers matches what varies in a form: registers, lanes and immediates. The sizes of elements belong to the form.
var numbers = regexp.MustCompile(`(^|[^.\w-])([vwxqds]?)(-?\d+)`)

// Encode returns the word of an instruction in the GNU assembler's syntax.
func Encode(text string) (uint32, error) {
	var values []int
	name, operands, _ := strings.Cut(text, " ")
	shape := numbers.ReplaceAllStringFunc(operands, func(s string) string {
		at := strings.IndexAny(s, "-0123456789")
		v, err := strconv.Atoi(s[at:])
		if err != nil {
			panic(err) // the expression matches digits only
		}
		values = append(values, v)
		return s[:at] + "#"
	})
	f, ok := forms[name+" "+shape]
	if !ok || len(values) != len(f.fields) {
		return 0, fmt.Errorf("arm64: unknown instruction %q (%s)", text, shape)
	}
	word := f.base
	for i, place := range f.fields {
		bits, ok := place(values[i])
		if !ok {
			return 0, fmt.Errorf("arm64: number %d of %q does not fit", i+1, text)
		}
		word |= bits
	}
	return word, nil
}
