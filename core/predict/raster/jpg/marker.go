package jpg

import "fmt"

// Markers, ITU-T T.81 table B.1.
const (
	markerSOF0  = 0xc0 // baseline
	markerSOF1  = 0xc1 // extended sequential
	markerSOF2  = 0xc2 // progressive
	markerDHT   = 0xc4
	markerRST0  = 0xd0
	markerRST7  = 0xd7
	markerSOI   = 0xd8
	markerEOI   = 0xd9
	markerSOS   = 0xda
	markerDQT   = 0xdb
	markerDRI   = 0xdd
	markerAPP0  = 0xe0
	markerAPP14 = 0xee
	markerAPP15 = 0xef
	markerCOM   = 0xfe
)

var (
	errShort      = fmt.Errorf("%w: it ends early", ErrCorrupt)
	errNoSOI      = fmt.Errorf("%w: no start marker", ErrCorrupt)
	errSegment    = fmt.Errorf("%w: segment length", ErrCorrupt)
	errMarker     = fmt.Errorf("%w: unknown marker", ErrCorrupt)
	errNoScan     = fmt.Errorf("%w: no scan", ErrCorrupt)
	errNoFrame    = fmt.Errorf("%w: no frame header before the scan", ErrCorrupt)
	errUnknown    = fmt.Errorf("%w: unknown marker", ErrUnsupported)
	errColorModel = fmt.Errorf("%w: four components without an Adobe segment", ErrUnsupported)
)

// segments walks the marker segments of data.
type segments struct {
	data []byte
	pos  int // index of the next byte
}

// next returns the next marker and the body of its segment. The body of the end marker is nil. Like image/jpeg, next skips bytes before a
// marker, fill bytes and misplaced restart markers, two bytes at a time. In the misplaced bytes FF 00 FF D9 the second pair is therefore a
// marker.
func (s *segments) next() (marker byte, body []byte, err error) {
	for {
		if s.pos+2 > len(s.data) {
			return 0, nil, errShort
		}
		first, marker := s.data[s.pos], s.data[s.pos+1]
		s.pos += 2
		for first != 0xff {
			if s.pos >= len(s.data) {
				return 0, nil, errShort
			}
			first, marker = marker, s.data[s.pos]
			s.pos++
		}
		if marker == 0 {
			continue
		}
		for marker == 0xff {
			if s.pos >= len(s.data) {
				return 0, nil, errShort
			}
			marker = s.data[s.pos]
			s.pos++
		}
		if marker == markerEOI {
			return marker, nil, nil
		}
		if markerRST0 <= marker && marker <= markerRST7 {
			continue
		}
		body, err = s.body()
		return marker, body, err
	}
}

// body reads the length of a segment, and returns the bytes after it. The length counts its own two bytes too.
func (s *segments) body() ([]byte, error) {
	if s.pos+2 > len(s.data) {
		return nil, errShort
	}
	n := int(s.data[s.pos])<<8 + int(s.data[s.pos+1]) - 2
	s.pos += 2
	if n < 0 {
		return nil, errSegment
	}
	if s.pos+n > len(s.data) {
		return nil, errShort
	}
	body := s.data[s.pos : s.pos+n : s.pos+n]
	s.pos += n
	return body, nil
}

// skipScan moves past entropy-coded data to the next marker that is neither a restart
// marker nor stuffing.
func (s *segments) skipScan() error {
	for {
		i := indexFF(s.data[s.pos:])
		if i < 0 || s.pos+i+1 >= len(s.data) {
			s.pos = len(s.data)
			return errShort
		}
		s.pos += i
		switch m := s.data[s.pos+1]; {
		case m == 0 || markerRST0 <= m && m <= markerRST7:
			s.pos += 2
		case m == 0xff:
			s.pos++
		default:
			return nil
		}
	}
}

// unknownMarker returns the error for a marker that this package does not handle.
func unknownMarker(marker byte) error {
	if marker < 0xc0 {
		return errMarker
	}
	return errUnknown
}

// skippable reports whether the decoder ignores the segments of a marker.
func skippable(marker byte) bool {
	return markerAPP0 <= marker && marker <= markerAPP15 || marker == markerCOM
}

// ReadConfig reads the headers up to the first scan. It then counts the scans by walking all
// markers of the file, in about 0.1 ms for each megabyte. It allocates no memory for the sizes
// that the file declares, and does not report damage after the first scan header.
func ReadConfig(data []byte) (Config, error) {
	var f frame
	s := segments{data: data}
	if err := s.start(); err != nil {
		return Config{}, err
	}
	for scans := 0; ; {
		marker, body, err := s.next()
		switch {
		case err == nil && marker == markerSOS && f.n == 0:
			return Config{}, errNoFrame
		case err == nil && marker == markerSOS:
			scans++
			err = s.skipScan()
		case err == nil && marker == markerEOI && scans == 0:
			return Config{}, errNoScan
		case err == nil && scans == 0:
			err = f.header(marker, body)
		}
		if err != nil && scans == 0 {
			return Config{}, err
		}
		if err != nil || marker == markerEOI {
			return f.config(scans), nil
		}
	}
}

// start reads the start marker.
func (s *segments) start() error {
	if len(s.data) < 2 {
		return errShort
	}
	if s.data[0] != 0xff || s.data[1] != markerSOI {
		return errNoSOI
	}
	s.pos = 2
	return nil
}
