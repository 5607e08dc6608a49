package call

import "github.com/sightline-dev/sightline/core/log/form"

// NewThingID reads the id that a request gives to a new thing, or generates one if it is absent. It returns errors of the given kind for
// an id that is too long, has control characters, or cannot be in a path.
func NewThingID(x *Call, kind error, o Object) (string, error) {
	id, err := o.Text("id")
	if err != nil {
		return "", Refuse(kind, err)
	}
	if id == "" {
		return x.NewID()
	}
	return id, CheckID(kind, o.MemberPath("id"), id)
}

// CheckID returns an error of the given kind for an invalid id. path is its place in the request.
func CheckID(kind error, path, id string) error {
	switch {
	case !form.IsText(id, MaxIDBytes):
		return Refusef(kind, "%s: must be at most %d bytes, without control characters.", path, MaxIDBytes)
	case id == "":
		return Refusef(kind, "%s is missing.", path)
	case !form.IsUnreserved(id):
		return Refusef(kind, "%s: %q is part of a path and reserved; use another id.", path, id)
	}
	return nil
}

// CheckConceptID returns an error for an id that a custom concept cannot have.
func CheckConceptID(kind error, path, id string) error {
	if form.IsPublicID(id) {
		return Refusef(kind, "%s: ids starting with %q are reserved for public concepts.", path, form.PublicPrefix)
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
		return nil, Refusef(kind, "%s: send 1 to %d ids.", o.MemberPath(name), MaxIDs)
	}
	return ids, nil
}

// CheckName returns an error for a name that is too long or has control characters.
func CheckName(kind error, o Object, name string) error {
	if !form.IsName(name) {
		return Refusef(kind, "%s: must be at most %d bytes without control characters.", o.MemberPath("name"), MaxNameBytes)
	}
	return nil
}
