package kernels

import "github.com/sightline-dev/sightline/core/predict"

// Networks returns the set whose network has a base. If it returns nil, the host does not have the network, and the guest runs it itself.
type Networks func(base [32]byte) *predict.Set

// ShareNetworks lets the guest use the networks that n returns. The instance has one recogniser for each.
func (in *Instance) ShareNetworks(n Networks) { in.networks = n }

// sharedNetwork is a network that the guest has asked for.
type sharedNetwork struct {
	base [32]byte
	*predict.Recogniser
}

// network(base) → i32
func (in *Instance) network(s []uint64) {
	base := [32]byte(in.bytes(s[0], 32))
	s[0] = 0
	for i := range in.shared {
		if in.shared[i].base == base {
			s[0] = uint64(i + 1)
			return
		}
	}
	if in.networks == nil {
		return
	}
	if set := in.networks(base); set != nil {
		in.shared = append(in.shared, sharedNetwork{base, set.NewRecogniser()})
		s[0] = uint64(len(in.shared))
	}
}

// recogniser returns the recogniser of a network by its number. For an unknown number, it ends the instance.
func (in *Instance) recogniser(number uint64) *predict.Recogniser {
	i := count(number) - 1
	if i < 0 || i >= len(in.shared) {
		wild()
	}
	return in.shared[i].Recogniser
}

// recognise(network, pixels, n, embedding, general, concepts, food, foods) → i32
func (in *Instance) recognise(s []uint64) {
	r := in.recogniser(s[0])
	n, concepts, foods := count(s[2]), count(s[5]), count(s[7])
	if side, general, food := r.Shape(); n != 3*side*side || concepts != general || foods != food {
		wild()
	}
	q, scale := view[int16](in, s[3], predict.Dim), view[float32](in, s[3]+2*predict.Dim, 1)
	e := &in.embedding
	err := r.Recognise(view[uint8](in, s[1], n), e, view[float32](in, s[4], concepts), view[float32](in, s[6], foods))
	copy(q, e.Q[:])
	scale[0] = e.Scale
	s[0] = 0
	if err == nil {
		s[0] = 1
	}
}

// cells(network, pixels, n, rows, room) → i64
func (in *Instance) cells(s []uint64) {
	r := in.recogniser(s[0])
	n, room := count(s[2]), count(s[4])
	height, width := r.CellsShape()
	shape := uint64(height)<<32 | uint64(width)
	if n == 0 && room == 0 {
		s[0] = shape
		return
	}
	if side, _, _ := r.Shape(); n != 3*side*side || height == 0 || room != height*width*(r.Classes()+predict.Dim) {
		wild()
	}
	err := r.Cells(view[uint8](in, s[1], n), view[float32](in, s[3], room))
	if s[0] = shape; err != nil {
		s[0] = 0
	}
}
