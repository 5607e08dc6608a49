package catalog

import (
	"encoding/binary"
	"math"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
)

// Header is what the fold knows of the whole partition. It changes in the batch of what it
// is about.
type Header struct {
	Seq      uint64   // of the last entry that was folded: the fold's cursor
	Fold     uint32   // version of the rules
	Next     uint32   // ordinal of the next input
	Counts   Counts   // of live inputs
	Horizon  log.HLC  // field writes below it are refused
	Barrier  log.HLC  // creates below it are refused
	Clock    log.HLC  // highest in the log
	Concepts uint64   // own concepts
	Sites    uint32   // last site that was leased or skipped, in the control partition; 0: none
	Base     [32]byte // the base model that serves, see predict.Set.Base; zero: none was named
	Extra    Extra
}

func encodeHeader(h *Header) []byte {
	var e field.Encoder
	e.Uint(1, h.Seq)
	e.Uint(2, uint64(h.Fold))
	e.Uint(3, uint64(h.Next))
	e.Uint(4, h.Counts.Processed)
	e.Uint(5, h.Counts.ToProcess)
	e.Uint(6, h.Counts.Errors)
	e.Fixed64(7, uint64(h.Horizon))
	e.Fixed64(8, uint64(h.Barrier))
	e.Fixed64(9, uint64(h.Clock))
	e.Uint(10, h.Concepts)
	e.Hash(11, h.Base[:])
	e.Uint(12, uint64(h.Sites))
	return e.Bytes(h.Extra)
}

// IsHeader reports whether a key, without the application's id, is the header's.
func IsHeader(key []byte) bool { return len(key) == 1 && key[0] == tableHeader }

// DecodeHeader reads a header's record. Errors: field.ErrFormat.
func DecodeHeader(data []byte) (Header, error) { return decodeHeader(data) }

func decodeHeader(data []byte) (Header, error) {
	var h Header
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			h.Seq = d.Uint()
		case 2:
			h.Fold = d.Uint32()
		case 3:
			h.Next = d.Uint32()
		case 4:
			h.Counts.Processed = d.Uint()
		case 5:
			h.Counts.ToProcess = d.Uint()
		case 6:
			h.Counts.Errors = d.Uint()
		case 7:
			h.Horizon = log.HLC(d.Fixed64())
		case 8:
			h.Barrier = log.HLC(d.Fixed64())
		case 9:
			h.Clock = log.HLC(d.Fixed64())
		case 10:
			h.Concepts = d.Uint()
		case 11:
			d.Hash(h.Base[:])
		case 12:
			h.Sites = d.Uint32()
		default:
			d.Keep()
		}
	}
	h.Extra = d.Extra()
	return h, named(d.Err(), "header")
}

func encodeWorkflow(w *Workflow) []byte {
	var e field.Encoder
	log.EncodeDot(&e, 1, w.Dot)
	e.Uint(2, w.Seq)
	e.Text(3, w.ID)
	e.Fixed64(4, uint64(w.Created))
	for _, n := range w.Nodes {
		log.EncodeNode(&e, 5, n)
	}
	return e.Bytes(w.Extra)
}

func decodeWorkflow(data []byte) (Workflow, error) {
	var w Workflow
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			w.Dot = log.DecodeDot(d.Message())
		case 2:
			w.Seq = d.Uint()
		case 3:
			w.ID = d.Text()
		case 4:
			w.Created = log.HLC(d.Fixed64())
		case 5:
			w.Nodes = append(w.Nodes, log.DecodeNode(d.Message()))
		default:
			d.Keep()
		}
	}
	w.Extra = d.Extra()
	return w, named(d.Err(), "workflow")
}

func encodeFeedback(f *Feedback) []byte {
	var e field.Encoder
	log.EncodeDot(&e, 1, f.Dot)
	e.Uint(2, f.Seq)
	e.Fixed64(3, uint64(f.Created))
	e.Text(4, f.By)
	e.Text(5, f.Model)
	e.Text(6, f.Version)
	e.Raw(7, f.JSON)
	return e.Bytes(f.Extra)
}

func decodeFeedback(data []byte) (Feedback, error) {
	var f Feedback
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			f.Dot = log.DecodeDot(d.Message())
		case 2:
			f.Seq = d.Uint()
		case 3:
			f.Created = log.HLC(d.Fixed64())
		case 4:
			f.By = d.Text()
		case 5:
			f.Model = d.Text()
		case 6:
			f.Version = d.Text()
		case 7:
			f.JSON = d.Raw()
		default:
			d.Keep()
		}
	}
	f.Extra = d.Extra()
	return f, named(d.Err(), "feedback")
}

func floatBytes(v []float32) []byte {
	if v == nil {
		return nil
	}
	b := make([]byte, 0, 4*len(v))
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return b
}

func bytesFloat(b []byte) []float32 {
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}
