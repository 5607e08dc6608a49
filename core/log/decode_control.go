package log

import "github.com/sightline-dev/sightline/core/log/field"

// newControlBody is newBody for the operations of the control log.
func newControlBody(kind Kind) (Body, func(*field.Decoder)) {
	switch kind {
	case kindAppCreate:
		b := &AppCreate{}
		return b, b.read
	case kindAppChange:
		b := &AppChange{}
		return b, b.read
	case kindAppDelete:
		b := &AppDelete{}
		return b, b.read
	case kindKeyCreate:
		b := &KeyCreate{}
		return b, b.read
	case kindKeyDelete:
		b := &KeyDelete{}
		return b, b.read
	case kindClientSet:
		b := &ClientSet{}
		return b, b.read
	case kindTokensRevoke:
		b := &TokensRevoke{}
		return b, b.read
	}
	return newEdgeBody(kind)
}

// newEdgeBody is newBody for the operations on edges and sites.
func newEdgeBody(kind Kind) (Body, func(*field.Decoder)) {
	switch kind {
	case kindEdgeCreate:
		b := &EdgeCreate{}
		return b, b.read
	case kindEdgeEnrolled:
		b := &EdgeEnrolled{}
		return b, b.read
	case kindEdgeRevoke:
		b := &EdgeRevoke{}
		return b, b.read
	case kindSiteLease:
		b := &SiteLease{}
		return b, b.read
	case kindSitesSkip:
		b := &SitesSkip{}
		return b, b.read
	case kindTokenKeys:
		b := &TokenKeys{}
		return b, b.read
	}
	return nil, nil
}

// decodeChange reads a text that is to replace another.
func decodeChange(d *field.Decoder) *string {
	text := ""
	for d.Next() {
		if d.Number == 1 {
			text = d.Text()
		}
	}
	return &text
}

// decodeNumber reads a number that is to replace another.
func decodeNumber(d *field.Decoder) *uint64 {
	var n uint64
	for d.Next() {
		if d.Number == 1 {
			n = d.Uint()
		}
	}
	return &n
}

// decodeFlag reads a bool that is to replace another.
func decodeFlag(d *field.Decoder) *bool {
	flag := false
	for d.Next() {
		if d.Number == 1 {
			flag = d.Bool()
		}
	}
	return &flag
}

func (b *AppCreate) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.ID = d.Text()
	case 2:
		b.Name = d.Text()
	case 3:
		b.Language = d.Text()
	case 4:
		b.DefaultModel = d.Text()
	case 5:
		b.Owner = d.Text()
	case 6:
		b.LocalOnly = d.Bool()
	default:
		d.Keep()
	}
}

func (b *AppChange) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.ID = d.Text()
	case 2:
		b.Name = decodeChange(d.Message())
	case 3:
		b.DefaultModel = decodeChange(d.Message())
	case 4:
		b.MaxStale = decodeNumber(d.Message())
	case 5:
		b.LocalOnly = decodeFlag(d.Message())
	default:
		d.Keep()
	}
}

func (b *AppDelete) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.ID = d.Text()
	default:
		d.Keep()
	}
}

func (b *KeyCreate) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		d.Hash(b.Hash[:])
	case 2:
		b.App = d.Text()
	case 3:
		b.Scopes = append(b.Scopes, d.Text())
	case 4:
		b.Description = d.Text()
	case 5:
		d.Hash(b.Replaces[:])
	default:
		d.Keep()
	}
}

func (b *KeyDelete) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		d.Hash(b.Hash[:])
	default:
		d.Keep()
	}
}

func (b *ClientSet) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.App = d.Text()
	case 2:
		b.ID = d.Text()
	case 3:
		d.Hash(b.Secret[:])
	default:
		d.Keep()
	}
}

func (b *TokensRevoke) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.App = d.Text()
	default:
		d.Keep()
	}
}

func (b *EdgeCreate) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.ID = d.Text()
	case 2:
		b.Name = d.Text()
	case 3:
		d.Hash(b.Token[:])
	case 4:
		b.Apps = append(b.Apps, d.Text())
	case 5:
		b.Owner = d.Text()
	default:
		d.Keep()
	}
}

func (b *EdgeEnrolled) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.ID = d.Text()
	case 2:
		d.Hash(b.Key[:])
	default:
		d.Keep()
	}
}

func (b *EdgeRevoke) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.ID = d.Text()
	default:
		d.Keep()
	}
}

func (b *SiteLease) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.Site = Site(d.Uint32())
	case 2:
		b.App = d.Text()
	case 3:
		b.Holder = d.Text()
	case 4:
		d.Hash(b.Secret[:])
	case 5:
		b.Until = HLC(d.Fixed64())
	case 6:
		b.Edge = d.Text()
	case 7:
		b.Life = d.Fixed64()
	default:
		d.Keep()
	}
}

func (b *SitesSkip) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.To = Site(d.Uint32())
	default:
		d.Keep()
	}
}

func (b *TokenKeys) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.Issuer = d.Text()
	case 2:
		b.Keys = append(b.Keys, DecodeKey(d.Message()))
	default:
		d.Keep()
	}
}

// DecodeKey reads a key that EncodeKeys has written.
func DecodeKey(d *field.Decoder) (k PublicKey) {
	for d.Next() {
		switch d.Number {
		case 1:
			k.ID = d.Text()
		case 2:
			d.Hash(k.Key[:])
		}
	}
	return k
}
