package jsonio

// Plain returns the number of bytes of b before the first that a string may not hold as it is: a
// quote, a backslash, a control character, or a byte outside ASCII. It is for a host that lends
// it to a guest, as [DecodeGroups] is.
func Plain(b []byte) int { return plain(b) }

// DecodeGroups decodes groups of eight characters of base64 into six bytes each, from the start of
// src, as far as all are of the alphabet and eight bytes are left in dst; it may leave a few
// groups at the end. It returns how much of src it took and of dst it made.
func DecodeGroups(dst, src []byte) (ate, made int) { return decodeGroups(dst, src) }
