package call

import (
	"slices"
	"strings"
	"unicode"
)

// NewThing reads the id that a request gives to a new thing, or generates one if it is absent. It returns errors of the given kind for
// an id that is too long, has control characters, or cannot be in a path.
func NewThing(x *Call, kind error, o Object) (string, error) {
	id, err := o.Text("id")
	if err != nil {
		return "", Refuse(kind, err)
	}
	if id == "" {
		return x.NewID()
	}
	return id, CheckID(kind, o.At("id"), id)
}

// CheckID returns an error of the given kind for an invalid id. path is its place in the request.
func CheckID(kind error, path, id string) error {
	switch {
	case len(id) > MaxIDBytes || strings.ContainsFunc(id, unicode.IsControl):
		return Refusef(kind, "%s: must be at most %d bytes, without control characters.", path, MaxIDBytes)
	case id == "":
		return Refusef(kind, "%s is missing.", path)
	case id == "." || id == ".." || slices.Contains(Reserved, id):
		return Refusef(kind, "%s: %q is part of a path and reserved; use another id.", path, id)
	}
	return nil
}

// CheckConceptID returns an error for an id that a custom concept cannot have.
func CheckConceptID(kind error, path, id string) error {
	if IsPublicID(id) {
		return Refusef(kind, "%s: ids starting with %q are reserved for public concepts.", path, publicPrefix)
	}
	return CheckID(kind, path, id)
}

// IDList reads the list of ids in a request that deletes things.
func IDList(kind error, o Object, name string) ([]string, error) {
	ids, err := o.Texts(name)
	if err != nil {
		return nil, Refuse(kind, err)
	}
	if len(ids) == 0 || len(ids) > MaxIDs {
		return nil, Refusef(kind, "%s: send 1 to %d ids.", o.At(name), MaxIDs)
	}
	return ids, nil
}

// publicPrefix is the start of the ids of public concepts.
const publicPrefix = "ai_"

// IsPublicID reports whether only public concepts can have an id.
func IsPublicID(id string) bool { return strings.HasPrefix(id, publicPrefix) }

// Reserved are fixed path segments at positions where other paths have an id. No new thing may have one as its id, since no path
// would lead to it.
var Reserved = []string{"searches", "status", "usage"}

// CheckName returns an error for a name that is too long or has control characters, which a terminal or a log viewer would execute.
func CheckName(kind error, o Object, name string) error {
	if len(name) > MaxNameBytes || strings.ContainsFunc(name, unicode.IsControl) {
		return Refusef(kind, "%s: must be at most %d bytes without control characters.", o.At("name"), MaxNameBytes)
	}
	return nil
}
