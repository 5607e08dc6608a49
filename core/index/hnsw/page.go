package hnsw

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
)

// pageSlots is the number of slots in a page: README.md has the format.
const pageSlots = 32

const (
	formatVersion = 1
	headerBytes   = 56
	pageHead      = 16 // bytes before the first slot
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func pageOf(slot uint32) int { return int(slot / pageSlots) }

// header is the graph's header, decoded.
type header struct {
	dim, m, ef  uint16
	slots       uint32
	live, tombs uint32
	entry       uint32
	seq         uint64
	nodes       uint64 // digest of the live nodes
	pages       uint64 // digest of the pages
}

func (h *header) append(b []byte) []byte {
	start := len(b)
	b = append(b, "hnsw"...)
	for _, v := range []uint16{formatVersion, h.dim, h.m, h.ef} {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	for _, v := range []uint32{h.slots, h.live, h.tombs, h.entry} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	for _, v := range []uint64{h.seq, h.nodes, h.pages} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

func parseHeader(b []byte) (*header, error) {
	if len(b) != headerBytes || string(b[:4]) != "hnsw" {
		return nil, corrupt("no header in %d bytes", len(b))
	}
	if v := binary.LittleEndian.Uint16(b[4:]); v != formatVersion {
		return nil, corrupt("format version %d, want %d", v, formatVersion)
	}
	if crc32.Checksum(b[:headerBytes-4], castagnoli) != binary.LittleEndian.Uint32(b[headerBytes-4:]) {
		return nil, corrupt("header fails its checksum")
	}
	u16, u32, u64 := binary.LittleEndian.Uint16, binary.LittleEndian.Uint32, binary.LittleEndian.Uint64
	return &header{
		dim: u16(b[6:]), m: u16(b[8:]), ef: u16(b[10:]), slots: u32(b[12:]), live: u32(b[16:]), tombs: u32(b[20:]),
		entry: u32(b[24:]), seq: u64(b[28:]), nodes: u64(b[36:]), pages: u64(b[44:]),
	}, nil
}

// slotsIn returns the number of slots in a page.
func (g *Graph) slotsIn(page int) int { return min(pageSlots, len(g.nodes)-page*pageSlots) }

// appendPage appends the bytes of a page.
func (g *Graph) appendPage(b []byte, page int) []byte {
	start := len(b)
	b = append(b, "hnpg"...)
	b = binary.LittleEndian.AppendUint16(b, formatVersion)
	b = binary.LittleEndian.AppendUint16(b, uint16(g.slotsIn(page)))
	b = binary.LittleEndian.AppendUint32(b, uint32(page))
	b = append(b, 0, 0, 0, 0)
	for slot := uint32(page * pageSlots); slot < uint32(page*pageSlots+g.slotsIn(page)); slot++ {
		b = binary.LittleEndian.AppendUint32(b, g.nodes[slot])
		if !g.isUsed(slot) {
			continue
		}
		level := g.levels(slot)
		flags := byte(2 * level)
		if g.dead.has(slot) {
			flags |= 1
		}
		b = append(b, flags)
		for l := range level + 1 {
			links := full(g.links(slot, l))
			b = append(b, byte(len(links)))
			for _, to := range links {
				b = binary.LittleEndian.AppendUint32(b, to)
			}
		}
	}
	binary.LittleEndian.PutUint32(b[start+12:], pageSum(b[start:]))
	return b
}

// pageSum returns the checksum of a page of at least pageHead bytes.
func pageSum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:12], castagnoli), castagnoli, b[pageHead:])
}

// readPage fills the slots of a page, which are free, from its bytes. The caller checks the targets of links after all pages.
func (g *Graph) readPage(page int, b []byte) error {
	if len(b) < pageHead || string(b[:4]) != "hnpg" {
		return corrupt("page %d has no head in %d bytes", page, len(b))
	}
	if v := binary.LittleEndian.Uint16(b[4:]); v != formatVersion {
		return corrupt("page %d has format version %d, want %d", page, v, formatVersion)
	}
	if pageSum(b) != binary.LittleEndian.Uint32(b[12:]) {
		return corrupt("page %d fails its checksum", page)
	}
	if n := binary.LittleEndian.Uint16(b[6:]); int(n) != g.slotsIn(page) || binary.LittleEndian.Uint32(b[8:]) != uint32(page) {
		return corrupt("page %d has the wrong number or the wrong count of slots, %d", page, n)
	}
	rest := b[pageHead:]
	ok := true
	for slot := uint32(page * pageSlots); ok && slot < uint32(page*pageSlots+g.slotsIn(page)); slot++ {
		rest, ok = g.readSlot(slot, rest)
	}
	if !ok || len(rest) > 0 {
		return corrupt("page %d has malformed slots", page)
	}
	return nil
}

// readSlot fills one slot and returns the bytes after it.
func (g *Graph) readSlot(slot uint32, b []byte) (rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, false
	}
	node := binary.LittleEndian.Uint32(b)
	if node == noNode {
		return b[4:], true
	}
	if len(b) < 5 || int(b[4]>>1) != g.levelOf(node) {
		return nil, false
	}
	level := int(b[4] >> 1)
	g.nodes[slot] = node
	if b[4]&1 != 0 {
		g.dead.set(slot)
	}
	g.upper.put(slot, level)
	b = b[5:]
	for l := range level + 1 {
		links := g.links(slot, l)
		if len(b) < 1 || int(b[0]) > len(links) || len(b) < 1+4*int(b[0]) {
			return nil, false
		}
		n := int(b[0])
		b = b[1:]
		for i := range n {
			links[i] = binary.LittleEndian.Uint32(b[4*i:])
		}
		if slices.Contains(links[:n], noSlot) {
			return nil, false
		}
		b = b[4*n:]
	}
	return b, true
}
