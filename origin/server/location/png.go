package location

import (
	"encoding/binary"
	"hash/crc32"
	"math"
)

// pngChunks lists the PNG chunks that stay, with their maximum length: those that a decoder requires, whose kind begins with a capital letter,
// and those that affect the look of the pixels.
var pngChunks = map[string]int64{
	"IHDR": 13, "PLTE": 768, "IDAT": math.MaxInt64, "CgBI": 4,
	"tRNS": 256, "gAMA": 4, "cHRM": 32, "sRGB": 1, "iCCP": math.MaxInt64, "cICP": 4, "mDCV": 24, "cLLI": 8, "sBIT": 4, "bKGD": 6,
	"pHYs": 9, "hIST": 512, "acTL": 8, "fcTL": 26, "fdAT": math.MaxInt64,
}

// unread is an ancillary, private kind of PNG chunk, which every reader skips.
const unread = "skIp"

// png reduces the chunks of a PNG. A chunk is its length, its kind, its body and a CRC of kind and body.
func (p *plan) png() {
	for at := int64(8); at < p.size(); {
		if at+8 > p.size() {
			p.zero(at, p.size())
			return
		}
		kind := p.data[at+4 : at+8]
		from := at + 8
		to := from + int64(binary.BigEndian.Uint32(p.data[at:])) // also where the CRC begins
		switch longest, stays := pngChunks[string(kind)]; {
		case string(kind) == "IEND":
			p.chunk(at, to, kind, nil)
			p.zero(to+4, p.size())
			return
		case string(kind) == "eXIf":
			body := p.data[from:min(to, p.size())]
			p.step(int64(len(body)))
			p.chunk(at, to, kind, keepChunkOrientation(body))
		case !stays || to-from > longest:
			p.chunk(at, to, []byte(unread), nil)
		}
		if at = to + 4; !p.step(12) {
			return
		}
	}
}

// chunk replaces the chunk at an offset. The new body is by and then zeros up to to.
func (p *plan) chunk(at, to int64, kind, by []byte) {
	p.put(at+4, kind)
	p.replace(at+8, to, by)
	if to+4 > p.size() {
		p.zero(to, p.size()) // a file that ends early has no valid CRC
		return
	}
	sum := crc32.Update(crc32.ChecksumIEEE(kind), crc32.IEEETable, by)
	for n := to - at - 8 - int64(len(by)); n > 0 && p.step(min(n, int64(len(zeroes)))); n -= int64(len(zeroes)) {
		sum = crc32.Update(sum, crc32.IEEETable, zeroes[:min(n, int64(len(zeroes)))])
	}
	p.put(to, binary.BigEndian.AppendUint32(nil, sum))
}
