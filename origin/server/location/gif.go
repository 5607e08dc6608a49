package location

import "slices"

// Blocks and extensions of GIF.
const (
	gifExtension   = 0x21
	gifImage       = 0x2c
	gifTrailer     = 0x3b
	gifPlainText   = 0x01
	gifControl     = 0xf9
	gifComment     = 0xfe
	gifApplication = 0xff
)

// gif reduces the blocks of a GIF.
func (p *plan) gif() {
	if len(p.data) < 13 {
		return
	}
	for at := 13 + colours(p.data[10]); at < p.size() && p.step(1); {
		switch p.data[at] {
		case gifImage:
			at = p.gifImage(at)
		case gifExtension:
			at = p.gifExtension(at)
		case 0: // between two blocks
			at++
		case gifTrailer:
			p.zero(at+1, p.size())
			return
		default:
			p.zero(at, p.size())
			return
		}
	}
}

// colours returns the number of bytes of the colour table that fields declare.
func colours(fields byte) int64 {
	if fields&0x80 == 0 {
		return 0
	}
	return 3 << (1 + fields&7)
}

// gifImage returns the offset after the image at an offset.
func (p *plan) gifImage(at int64) int64 {
	if at += 10; at > p.size() {
		return at
	}
	return p.gifBlocks(at + colours(p.data[at-1]) + 1)
}

// gifBlocks returns the offset after the data blocks at an offset, and after the empty block that ends them.
func (p *plan) gifBlocks(at int64) int64 {
	for at < p.size() && p.step(2) {
		n := int64(p.data[at])
		if at += 1 + n; n == 0 {
			return at
		}
	}
	return at
}

// gifExtension turns the extension at an offset into a comment, unless it stays. It returns the offset after it. Like our decoder,
// gifExtension reads the first block of an application or a text without regard to a size of 0.
func (p *plan) gifExtension(at int64) int64 {
	if at+3 > p.size() {
		p.zero(at, p.size())
		return p.size()
	}
	label, blocks := p.data[at+1], at+2
	end := blocks
	switch label {
	case gifPlainText:
		end += 13
	case gifApplication:
		end += 1 + int64(p.data[blocks])
	}
	end = p.gifBlocks(end)
	if end > p.size() {
		end = p.size() // the blocks end early, so no sizes of blocks are needed
		p.put(at+1, []byte{gifComment})
		p.zero(blocks, end)
		return end
	}
	body := p.data[blocks:end]
	switch {
	case label == gifControl && len(body) == 6 && body[0] == 4, label == gifApplication && isLoop(body):
		return end
	case label == gifComment && len(body) == 1: // it is empty
		return end
	case len(body) == 2 && body[0] == 0: // an application without a name: no comment has this size
		return end
	}
	// The sizes of the blocks may be text too. XMP in GIF ends with bytes that bring any reader to the end. So all blocks get new sizes.
	p.put(at+1, []byte{gifComment})
	for left := end - blocks - 1; left > 0 && p.step(1); {
		n := min(left, 256)
		if left == 257 { // one byte would remain; a block has at least two
			n = 255
		}
		p.replace(blocks, blocks+n, []byte{byte(n - 1)})
		blocks, left = blocks+n, left-n
	}
	p.zero(end-1, end)
	return end
}

// isLoop reports whether the blocks of an application extension only contain the number of times that an animation is shown, and the
// number of bytes to load first.
func isLoop(blocks []byte) bool {
	if len(blocks) < 12 || !slices.Contains([]string{"NETSCAPE2.0", "ANIMEXTS1.0"}, string(blocks[1:12])) || blocks[0] != 11 {
		return false
	}
	for b := blocks[12:]; len(b) > 1; {
		switch {
		case b[0] == 3 && b[1] == 1, b[0] == 5 && b[1] == 2:
			b = b[1+b[0]:]
		default:
			return false
		}
	}
	return true
}
