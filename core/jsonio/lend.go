package jsonio

// Plain returns the number of bytes of b before the first that a string must escape or that is outside ASCII: a quote, a backslash, a
// control character, or a byte of 0x80 and above. A host offers it and [DecodeGroups] to its guest.
func Plain(b []byte) int { return plain(b) }

// DecodeGroups decodes groups of eight characters of base64 into six bytes each, from the start of src. It stops at a character outside
// the alphabet, or with fewer than eight bytes left in dst, and may leave a few groups at the end. It returns the number of bytes that it
// read from src and wrote to dst.
func DecodeGroups(dst, src []byte) (ate, made int) { return decodeGroups(dst, src) }
