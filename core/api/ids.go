package api

import (
	"slices"
	"strings"
	"unicode"
)

// newThing reads the id that a request gives to what it creates. An absent one is made up.
// Errors are of the given kind: an id that is too long, that holds control characters, or
// that no path could name.
func (x *Call) newThing(kind error, o object) (string, error) {
	id, err := o.text("id")
	if err != nil {
		return "", refuse(kind, err)
	}
	if id == "" {
		return x.newID()
	}
	return id, checkID(kind, o.at("id"), id)
}

// checkID refuses an id that cannot be one; where is its place in the request.
func checkID(kind error, where, id string) error {
	switch {
	case len(id) > maxIDBytes || strings.ContainsFunc(id, unicode.IsControl):
		return refusef(kind, "%s: must be at most %d bytes, without control characters.", where, maxIDBytes)
	case id == "":
		return refusef(kind, "%s is missing.", where)
	case id == "." || id == ".." || slices.Contains(fixed, id):
		return refusef(kind, "%s: %q is part of a path and reserved; use another id.", where, id)
	}
	return nil
}

// checkConceptID refuses what cannot be a concept of an application's own.
func checkConceptID(kind error, where, id string) error {
	if isPublicID(id) {
		return refusef(kind, "%s: ids starting with %q are reserved for public concepts.", where, publicPrefix)
	}
	return checkID(kind, where, id)
}

// conceptRefs reads a list of concepts by id, without repetitions. Those of the application
// may be new; public ones must exist. Errors are of the given kind.
func (x *Call) conceptRefs(kind error, o object, name string) ([]string, error) {
	refs, n, err := o.objects(name)
	if err != nil {
		return nil, refuse(kind, err)
	}
	if n > maxModelConcepts {
		return nil, refusef(kind, "%s: at most %d concepts are allowed.", o.at(name), maxModelConcepts)
	}
	var ids []string
	seen := make(map[string]bool, n)
	for ref, err := range refs {
		if err != nil {
			return nil, refuse(kind, err)
		}
		id, err := ref.text("id")
		if err != nil {
			return nil, refuse(kind, err)
		}
		if _, public := x.net.concepts[id]; !public {
			if err := checkConceptID(kind, ref.at("id"), id); err != nil {
				return nil, err
			}
		}
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// idList reads a list of ids, as deletes send it.
func idList(kind error, o object, name string) ([]string, error) {
	ids, err := o.texts(name)
	if err != nil {
		return nil, refuse(kind, err)
	}
	if len(ids) == 0 || len(ids) > maxIDs {
		return nil, refusef(kind, "%s: send 1 to %d ids.", o.at(name), maxIDs)
	}
	return ids, nil
}
