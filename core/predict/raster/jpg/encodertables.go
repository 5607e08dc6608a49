package jpg

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// annexQuantisers are the quantisers of luma and chroma for quality 50, in natural order: tables K.1 and K.2.
var annexQuantisers = [2][64]uint8{
	{
		16, 11, 10, 16, 24, 40, 51, 61,
		12, 12, 14, 19, 26, 58, 60, 55,
		14, 13, 16, 24, 40, 57, 69, 56,
		14, 17, 22, 29, 51, 87, 80, 62,
		18, 22, 37, 56, 68, 109, 103, 77,
		24, 35, 55, 64, 81, 104, 113, 92,
		49, 64, 78, 87, 103, 121, 120, 101,
		72, 92, 95, 98, 112, 100, 103, 99,
	},
	{
		17, 18, 24, 47, 99, 99, 99, 99,
		18, 21, 26, 66, 99, 99, 99, 99,
		24, 26, 56, 99, 99, 99, 99, 99,
		47, 66, 99, 99, 99, 99, 99, 99,
		99, 99, 99, 99, 99, 99, 99, 99,
		99, 99, 99, 99, 99, 99, 99, 99,
		99, 99, 99, 99, 99, 99, 99, 99,
		99, 99, 99, 99, 99, 99, 99, 99,
	},
}

// annexHuffman has the body of the DHT segment with the codes of tables K.3 to K.6: for DC and AC, of luma and chroma, the class and
// number, the number of codes of each length, and the symbols.
const annexHuffman = "\x00\x00\x01\x05\x01\x01\x01\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00" +
	"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b" +
	"\x10\x00\x02\x01\x03\x03\x02\x04\x03\x05\x05\x04\x04\x00\x00\x01\x7d" +
	"\x01\x02\x03\x00\x04\x11\x05\x12\x21\x31\x41\x06\x13\x51\x61\x07\x22\x71\x14\x32\x81\x91\xa1\x08" +
	"\x23\x42\xb1\xc1\x15\x52\xd1\xf0\x24\x33\x62\x72\x82\x09\x0a\x16\x17\x18\x19\x1a\x25\x26\x27\x28" +
	"\x29\x2a\x34\x35\x36\x37\x38\x39\x3a\x43\x44\x45\x46\x47\x48\x49\x4a\x53\x54\x55\x56\x57\x58\x59" +
	"\x5a\x63\x64\x65\x66\x67\x68\x69\x6a\x73\x74\x75\x76\x77\x78\x79\x7a\x83\x84\x85\x86\x87\x88\x89" +
	"\x8a\x92\x93\x94\x95\x96\x97\x98\x99\x9a\xa2\xa3\xa4\xa5\xa6\xa7\xa8\xa9\xaa\xb2\xb3\xb4\xb5\xb6" +
	"\xb7\xb8\xb9\xba\xc2\xc3\xc4\xc5\xc6\xc7\xc8\xc9\xca\xd2\xd3\xd4\xd5\xd6\xd7\xd8\xd9\xda\xe1\xe2" +
	"\xe3\xe4\xe5\xe6\xe7\xe8\xe9\xea\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8\xf9\xfa" +
	"\x01\x00\x03\x01\x01\x01\x01\x01\x01\x01\x01\x01\x00\x00\x00\x00\x00" +
	"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b" +
	"\x11\x00\x02\x01\x02\x04\x04\x03\x04\x07\x05\x04\x04\x00\x01\x02\x77" +
	"\x00\x01\x02\x03\x11\x04\x05\x21\x31\x06\x12\x41\x51\x07\x61\x71\x13\x22\x32\x81\x08\x14\x42\x91" +
	"\xa1\xb1\xc1\x09\x23\x33\x52\xf0\x15\x62\x72\xd1\x0a\x16\x24\x34\xe1\x25\xf1\x17\x18\x19\x1a\x26" +
	"\x27\x28\x29\x2a\x35\x36\x37\x38\x39\x3a\x43\x44\x45\x46\x47\x48\x49\x4a\x53\x54\x55\x56\x57\x58" +
	"\x59\x5a\x63\x64\x65\x66\x67\x68\x69\x6a\x73\x74\x75\x76\x77\x78\x79\x7a\x82\x83\x84\x85\x86\x87" +
	"\x88\x89\x8a\x92\x93\x94\x95\x96\x97\x98\x99\x9a\xa2\xa3\xa4\xa5\xa6\xa7\xa8\xa9\xaa\xb2\xb3\xb4" +
	"\xb5\xb6\xb7\xb8\xb9\xba\xc2\xc3\xc4\xc5\xc6\xc7\xc8\xc9\xca\xd2\xd3\xd4\xd5\xd6\xd7\xd8\xd9\xda" +
	"\xe2\xe3\xe4\xe5\xe6\xe7\xe8\xe9\xea\xf2\xf3\xf4\xf5\xf6\xf7\xf8\xf9\xfa"

// The codes of the symbols of luma and chroma: the length in the upper 16 bits, the code in the lower.
var (
	dcCodes [2][16]uint32
	acCodes [2][256]uint32
)

func init() {
	for body := annexHuffman; body != ""; {
		ac, number, counts := body[0]>>4 != 0, body[0]&15, body[1:17]
		body = body[17:]
		code := uint32(0)
		for i := range counts {
			for range counts[i] {
				entry := uint32(i+1)<<16 | code
				if ac {
					acCodes[number][body[0]] = entry
				} else {
					dcCodes[number][body[0]] = entry
				}
				body = body[1:]
				code++
			}
			code <<= 1
		}
	}
}

// aanFactors are a[k] in [forward], times 2¹⁴.
var aanFactors = [8]uint64{16384, 22725, 21407, 19266, 16384, 12873, 8867, 4520}

// quantise sets the tables for a quality. Its meaning is that of libjpeg.
func (e *Encoder) quantise(quality int) {
	quality = min(max(quality, 1), 100)
	percent := 200 - 2*quality
	if quality < 50 {
		percent = 5000 / quality
	}
	for i := range e.steps {
		for z, u := range unzig {
			q := uint64(min(max((int(annexQuantisers[i][u])*percent+50)/100, 1), 255))
			d := q * aanFactors[u>>3] * aanFactors[u&7] // times 2²⁸
			e.steps[i][z] = byte(q)
			e.scale[i][z] = int64(1 << 62 / d << (roundBits + 28 - 62 - 3) / (one * one))
		}
		for j := range e.zero[i] {
			e.zero[i][j] = 1 << (roundBits - 1 - bits.Len64(uint64(slices.Max(e.scale[i][16*j:16*j+16]))))
		}
	}
}

// headers appends the segments before the coded data.
func (e *Encoder) headers(dst []byte, width, height int) []byte {
	dst = append(dst, 0xff, markerSOI)
	dst = append(dst, 0xff, markerDQT, 0, 2+2*65)
	for i := range e.steps {
		dst = append(append(dst, byte(i)), e.steps[i][:]...)
	}
	dst = append(dst, 0xff, markerSOF0, 0, 17, 8)
	dst = binary.BigEndian.AppendUint16(dst, uint16(height))
	dst = binary.BigEndian.AppendUint16(dst, uint16(width))
	dst = append(dst, 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1)
	dst = append(dst, 0xff, markerDHT)
	dst = binary.BigEndian.AppendUint16(dst, 2+uint16(len(annexHuffman)))
	dst = append(dst, annexHuffman...)
	return append(dst, 0xff, markerSOS, 0, 12, 3, 1, 0x00, 2, 0x11, 3, 0x11, 0, 63, 0)
}
