package onnx

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

func (r *reader) appendAttr(n *Node, f field, refused error) (error, error) {
	b, err := f.message()
	if err != nil {
		return refused, err
	}
	name, a, bad, err := r.attr(b)
	if err != nil {
		return refused, err
	}
	if bad != nil {
		return bad, nil
	}
	if _, ok := n.Attr[name]; ok {
		return refused, fmt.Errorf("%w: attribute %q twice", ErrFormat, name)
	}
	if len(n.Attr) >= maxAttrs {
		return refused, fmt.Errorf("%w: more than %d attributes of a node", ErrLimit, maxAttrs)
	}
	if n.Attr == nil {
		n.Attr = map[string]Attr{}
	}
	n.Attr[name] = a
	return refused, nil
}

// attr reads an attribute. A kind that Attr cannot hold is returned as refused.
func (r *reader) attr(b []byte) (name string, a Attr, refused, err error) {
	var declared int64
	var held AttrKind // by the field that is present, for files that do not declare the kind
	err = fields(b, func(f field) (err error) {
		switch f.num {
		case 1:
			name, err = f.text()
		case 2:
			held, a.F = AttrFloat, math.Float32frombits(uint32(f.bits))
			if f.typ != protowire.Fixed32Type {
				return fmt.Errorf("%w: attribute %q is not a float", ErrFormat, name)
			}
		case 3:
			held = AttrInt
			a.I, err = f.integer()
		case 4:
			held = AttrString
			a.S, err = f.message()
			if len(a.S) > maxNameBytes {
				return fmt.Errorf("%w: attribute %q has %d bytes", ErrLimit, name, len(a.S))
			}
		case 5:
			held = AttrTensor
			err = r.attrTensor(&a, f)
		case 7:
			held = AttrFloats
			err = f.numbers(protowire.Fixed32Type, func(bits uint64) error {
				a.Floats = append(a.Floats, math.Float32frombits(uint32(bits)))
				return r.listed(len(a.Floats), name)
			})
		case 8:
			held = AttrInts
			err = f.numbers(protowire.VarintType, func(bits uint64) error {
				a.Ints = append(a.Ints, int64(bits))
				return r.listed(len(a.Ints), name)
			})
		case 20:
			declared, err = f.integer()
		case 21:
			refused = fmt.Errorf("%w: attribute refers to one of a function", ErrOperator)
		case 6, 9, 10, 11, 14, 15, 22, 23:
			refused = fmt.Errorf("%w: attribute %q has an unsupported kind", ErrOperator, name)
		}
		return err
	})
	if err != nil || refused != nil {
		return name, a, refused, err
	}
	a, err = settleKind(name, a, declared, held)
	return name, a, nil, err
}

// settleKind keeps the one field of a that its kind names. An empty list has no field of its own.
func settleKind(name string, a Attr, declared int64, held AttrKind) (Attr, error) {
	kind := held
	if declared != 0 {
		if declared < 0 || declared > math.MaxUint8 {
			return a, fmt.Errorf("%w: attribute %q of kind %d", ErrFormat, name, declared)
		}
		kind = AttrKind(declared)
	}
	switch kind {
	case AttrFloat:
		return Attr{Kind: kind, F: a.F}, nil
	case AttrInt:
		return Attr{Kind: kind, I: a.I}, nil
	case AttrString:
		return Attr{Kind: kind, S: append([]byte{}, a.S...)}, nil
	case AttrFloats:
		return Attr{Kind: kind, Floats: a.Floats}, nil
	case AttrInts:
		return Attr{Kind: kind, Ints: a.Ints}, nil
	case AttrTensor:
		if a.T != nil {
			return Attr{Kind: kind, T: a.T}, nil
		}
	}
	return a, fmt.Errorf("%w: attribute %q of kind %d has no value of that kind", ErrFormat, name, kind)
}

func (r *reader) attrTensor(a *Attr, f field) error {
	b, err := f.message()
	if err != nil {
		return err
	}
	if a.T != nil {
		return fmt.Errorf("%w: two tensors in one attribute", ErrFormat)
	}
	a.T, err = r.tensor(b)
	return err
}

func (r *reader) listed(n int, name string) error {
	if n > maxAttrInts {
		return fmt.Errorf("%w: attribute %q has over %d elements", ErrLimit, name, maxAttrInts)
	}
	return r.take(8, "an attribute's list")
}
