package catalog

import (
	"slices"

	"github.com/sightline-dev/sightline/core/log"
)

// DropRemovals drops removals older than the horizon, since no older write can arrive any longer. It reports whether there were any. The
// visible state does not change.
func (in *Input) DropRemovals(horizon log.HLC) bool {
	old := func(l Label) bool { return l.Value == log.Removed && l.At.At < horizon }
	removed := slices.ContainsFunc(in.Labels, old)
	if removed {
		in.Labels = slices.DeleteFunc(slices.Clone(in.Labels), old)
	}
	if in.Geo == nil && in.GeoAt != (log.Stamp{}) && in.GeoAt.At < horizon {
		in.GeoAt, removed = log.Stamp{}, true
	}
	if slices.ContainsFunc(in.Meta, func(p MetaPart) bool { return p.Removed && p.At.At < horizon }) {
		in.Meta.collect(horizon)
		removed = true
	}
	return removed
}

// DropRemovals drops the removals older than the horizon, and reports whether there were any.
func (m *Model) DropRemovals(horizon log.HLC) bool {
	out := func(c Member) bool { return !c.In && c.At.At < horizon }
	unset := func(s Setting) bool { return s.JSON == nil && s.At.At < horizon }
	removed := slices.ContainsFunc(m.Concepts, out) || slices.ContainsFunc(m.Config, unset)
	if removed {
		m.Concepts = slices.DeleteFunc(slices.Clone(m.Concepts), out)
		m.Config = slices.DeleteFunc(slices.Clone(m.Config), unset)
	}
	return removed
}
