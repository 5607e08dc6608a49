package location

import "encoding/binary"

// webpChunks lists the chunks of a WebP file that stay, and frameChunks those in a frame of an animation.
var (
	webpChunks  = map[string]bool{"VP8 ": true, "VP8L": true, "VP8X": true, "ALPH": true, "ANIM": true, "ANMF": true, "ICCP": true, "EXIF": true}
	frameChunks = map[string]bool{"VP8 ": true, "VP8L": true, "ALPH": true}
)

// webp reduces the chunks of a WebP file.
func (p *plan) webp() {
	end := min(8+int64(binary.LittleEndian.Uint32(p.data[4:])), p.size())
	p.riff(span{12, end}, webpChunks)
	p.zero(max(12, end), p.size())
}

// riff reduces the chunks in s. A chunk is its kind, its length, its body, and a byte if the length is odd.
func (p *plan) riff(s span, keep map[string]bool) {
	for at := s.from; at < s.to && p.step(8); {
		if at+8 > s.to {
			p.zero(at, s.to)
			return
		}
		kind := string(p.data[at : at+4])
		body := span{at + 8, at + 8 + int64(binary.LittleEndian.Uint32(p.data[at+4:]))}
		next := min(body.to+(body.to-body.from)&1, s.to)
		body.to = min(body.to, s.to)
		switch {
		case !keep[kind]:
			p.put(at, []byte("JUNK"))
			p.zero(body.from, next)
		case kind == "VP8X" && body.from < body.to:
			p.put(body.from, []byte{p.data[body.from] &^ (1 << 2)}) // the flag for XMP
		case kind == "EXIF":
			p.step(body.to - body.from)
			p.replace(body.from, body.to, keepChunkOrientation(p.data[body.from:body.to]))
		case kind == "ANMF":
			p.riff(span{min(body.from+16, body.to), body.to}, frameChunks)
		}
		at = next
	}
}
