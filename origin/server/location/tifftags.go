package location

// Tags of TIFF that this package reads.
const (
	tagWidth           = 256
	tagHeight          = 257
	tagBits            = 258
	tagCompression     = 259
	tagStripOffsets    = 273
	tagSamples         = 277
	tagRowsPerStrip    = 278
	tagStripCounts     = 279
	tagTileWidth       = 322
	tagTileHeight      = 323
	tagTileOffsets     = 324
	tagTileCounts      = 325
	tagSubIFDs         = 330
	tagJPEGTables      = 347
	tagOldJPEG         = 513
	tagOldJPEGCount    = 514
	tagOldQuantization = 519
	tagOldDC           = 520
	tagOldAC           = 521
	tagICC             = 34675
)

// Numbers of values that an entry may have, apart from a maximum number.
const (
	perSample = -1 - iota // one for each sample of a pixel
	perStrip              // any number
	curve                 // a power of two, or three times that, up to 16 bits of a sample
	encoded               // any number of bytes, which are not text
)

// keptTags lists the tags that a decoder needs, and how many values each may have. No tag of text is among them. Readers of TIFF use
// them for the size, the samples, the compression, strips and tiles, colours, the orientation, the resolution and further directories:
// TIFF 6.0, its technical notes, and the codecs of libtiff.
var keptTags = map[uint16]int64{
	254: 1, 255: 1, tagWidth: 1, tagHeight: 1, tagBits: perSample, tagCompression: 1,
	262:             1, // color model
	266:             1, // order of the bits
	tagStripOffsets: perStrip, tagOrientation: 1, tagSamples: 1, tagRowsPerStrip: 1, tagStripCounts: perStrip,
	280: perSample, 281: perSample, // range of the samples
	282: 1, 283: 1, // resolution
	284: 1,             // planes
	290: 1, 291: curve, // response to grey
	292: 1, 293: 1, // fax
	296: 1,         // unit of the resolution
	297: 2,         // number of the page
	301: curve,     // transfer function
	317: 1,         // predictor
	318: 2, 319: 6, // white and primary colours
	320:          curve, // colour map
	tagTileWidth: 1, tagTileHeight: 1, tagTileOffsets: perStrip, tagTileCounts: perStrip,
	tagSubIFDs: perStrip,
	332:        1, 334: 1, 336: perSample, // inks
	338: perSample, 339: perSample, 340: perSample, 341: perSample, // kinds and limits of samples
	342:           6, // range of the transfer function
	tagJPEGTables: encoded,
	512:           1, tagOldJPEG: 1, tagOldJPEGCount: 1, 515: 1, 517: perSample, 518: perSample,
	tagOldQuantization: perSample, tagOldDC: perSample, tagOldAC: perSample,
	529: 3, 530: 2, 531: 1, 532: 6, // YCbCr
	32995: 1, 32996: 1, // kinds of samples in old files
	tagICC: encoded,
	50674:  4, // LERC
}

// maxSamples is the maximum number of samples of a pixel. Pictures of satellites have hundreds.
const maxSamples = 1 << 12

// typeSizes lists the number of bytes of a value of each numeric type. It is 0 for text and for bytes without a type.
var typeSizes = [...]int64{1: 1, 2: 0, 3: 2, 4: 4, 5: 8, 6: 1, 7: 0, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4}

// typeUndefined is the type of bytes without a meaning to TIFF.
const typeUndefined = 7

// stays reports whether an entry stays, and the number of bytes of its value. samples is the number of samples of a pixel.
func stays(tag, kind uint16, count, samples int64) (size int64, ok bool) {
	most, ok := keptTags[tag]
	if !ok || int(kind) >= len(typeSizes) {
		return 0, false
	}
	size = typeSizes[kind]
	switch most {
	case encoded:
		return count, kind == 1 || kind == typeUndefined
	case perSample:
		most = 2 * max(4, min(samples, maxSamples)) // two for DotRange; some files do not have the number of samples
	case perStrip:
		most = count
	case curve:
		n := count
		if n%3 == 0 {
			n /= 3
		}
		if n&(n-1) != 0 {
			return 0, false
		}
		most = 3 << 16
	}
	return size * count, size > 0 && count <= most
}
