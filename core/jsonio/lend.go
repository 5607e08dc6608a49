package jsonio

// PlainPrefix returns the number of bytes at the start of b that a JSON string contains unescaped and that are ASCII. It stops at a quote, a
// backslash, a control character, or a byte of 0x80 and above. A host provides PlainPrefix and [DecodeGroups] to its guest as imports.
func PlainPrefix(b []byte) int { return plain(b) }

// DecodeGroups decodes groups of eight base64 characters into six bytes each, beginning at the start of src. It stops at a character
// outside the alphabet, or with fewer than eight bytes left in dst. It may also leave a few groups at the end. It returns the number of
// bytes that it read from src and the number that it wrote to dst.
func DecodeGroups(dst, src []byte) (ate, written int) { return decodeGroups(dst, src) }
