//go:build (purego || !amd64) && !(wasip1 && lent)

package jsonio

func plain(b []byte) int { return plainGeneric(b) }

func decodeGroups(dst, src []byte) (ate, written int) { return decodeGroupsGeneric(dst, src) }
