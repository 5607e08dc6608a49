package log

// Rename replaces the dots by which a body names what other operations made.
func Rename(body Body, to func(Dot) Dot) {
	for _, d := range bodyDots(body) {
		*d = to(*d)
	}
	if b, ok := body.(*InputDeleteAll); ok {
		b.rename(to)
	}
}

// rename replaces dots of Upto whose inputs have new names. The inputs before those keep their names, and are covered as before.
func (b *InputDeleteAll) rename(to func(Dot) Dot) {
	var upto []Dot
	for _, d := range b.Upto {
		now := to(d)
		if now.Writer == d.Writer {
			upto = append(upto, d)
			continue
		}
		if now.Writer != 0 && d.Seq > now.Seq {
			upto = append(upto, Dot{d.Writer, d.Seq - now.Seq})
		}
		upto = append(upto, now)
	}
	b.Upto = upto
}

// bodyDots returns the dots in a body.
func bodyDots(body Body) []*Dot {
	switch b := body.(type) {
	case *InputFetched:
		return []*Dot{&b.Input}
	case *InputLabels:
		return []*Dot{&b.Input}
	case *InputMeta:
		return []*Dot{&b.Input}
	case *InputGeo:
		return []*Dot{&b.Input}
	case *InputDelete:
		return []*Dot{&b.Input}
	case *OutputsPatch:
		return []*Dot{&b.Input}
	case *ModelPatch:
		return []*Dot{&b.Model}
	case *ModelDelete:
		return []*Dot{&b.Model}
	case *VersionTrain:
		return []*Dot{&b.Model}
	case *VersionResult:
		return []*Dot{&b.Model, &b.Train}
	case *VersionDelete:
		return []*Dot{&b.Model}
	case *WorkflowDelete:
		return []*Dot{&b.Workflow}
	}
	return nil
}
