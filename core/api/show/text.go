package show

import (
	"time"

	"github.com/sightline-dev/sightline/core/jsonio"
)

// Timestamp returns t in the form of answers: UTC, six digits of a second.
func Timestamp(t time.Time) string {
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.Format("2006-01-02T15:04:05.000000Z")
	}
	hour, minute, second := t.Clock()
	b := []byte("0000-00-00T00:00:00.000000Z")
	decimal(b[:4], year)
	decimal(b[5:7], int(month))
	decimal(b[8:10], day)
	decimal(b[11:13], hour)
	decimal(b[14:16], minute)
	decimal(b[17:19], second)
	decimal(b[20:26], t.Nanosecond()/1000)
	return string(b)
}

// decimal writes n, which is not negative, with as many digits as b has bytes.
func decimal(b []byte, n int) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
}

// WriteText writes a string member, unless it is empty.
func WriteText(w *jsonio.Writer, name, text string) {
	if text != "" {
		w.Text(name, text)
	}
}

// WriteInt writes an integer member.
func WriteInt[N ~int | ~int64 | ~uint8 | ~uint32 | ~uint64](w *jsonio.Writer, name string, n N) {
	w.Name(name)
	w.Int(int64(n))
}

// WriteFloat32 writes a number with the digits of single precision.
func WriteFloat32[F float32 | float64](w *jsonio.Writer, name string, x F) {
	w.Name(name)
	w.Float32(float32(x))
}

// WriteTime writes a time, unless it is zero.
func WriteTime(w *jsonio.Writer, name string, t time.Time) {
	if !t.IsZero() {
		WriteText(w, name, Timestamp(t))
	}
}

// WriteTrue writes a member that is true. It writes nothing if set is false.
func WriteTrue(w *jsonio.Writer, name string, set bool) {
	if set {
		w.Name(name)
		w.Bool(true)
	}
}
