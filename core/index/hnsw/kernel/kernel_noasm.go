//go:build (purego || !(amd64 || arm64)) && !(wasip1 && lent)

package kernel

import "unsafe"

func (v *Vectors) distances(dst []uint32, z *Query, rows []uint32) {
	v.distancesGeneric(dst, z, rows)
}

func (v *Vectors) dots(dst []int64, z *Query, rows []uint32) { v.dotsGeneric(dst, z, rows) }

func (l *Lists) find(rows []uint32, x uint32) int { return l.findGeneric(rows, x) }

func split(h []int8, l []uint8, q []int16) (sum int32, s Squares) { return splitGeneric(h, l, q) }

func fetch(unsafe.Pointer) {}
