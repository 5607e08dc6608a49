package describe

import (
	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/lang"
)

// field is a member of an object in a request or an answer. always is set if the object must have it.
type field struct {
	name   string
	schema object
	always bool
}

// always returns a field that every answer has and every request needs.
func always(name string, schema object, note string) field {
	return field{name, withNote(schema, note), true}
}

// maybe returns an optional field.
func maybe(name string, schema object, note string) field {
	return field{name, withNote(schema, note), false}
}

func withNote(schema object, note string) object {
	if note == "" {
		return schema
	}
	return schema.with(member{"description", note})
}

// record returns the schema of an object in requests. The service ignores unknown members.
func record(note string, fields ...field) object {
	properties, required := object{}, []string{}
	for _, f := range fields {
		properties = append(properties, member{f.name, f.schema})
		if f.always {
			required = append(required, f.name)
		}
	}
	s := withNote(object{{"type", "object"}}, note)
	if len(required) > 0 {
		s = s.with(member{"required", required})
	}
	return s.with(member{"properties", properties})
}

// closedRecord returns the schema of an object in answers. It has no members other than fields.
func closedRecord(note string, fields ...field) object {
	return record(note, fields...).with(member{"additionalProperties", false})
}

// answer returns the schema of a complete answer: the status and fields.
func answer(note string, fields ...field) object {
	return closedRecord(note, append([]field{always("status", ref("Status"), "")}, fields...)...)
}

func ref(name string) object { return object{{"$ref", "#/components/schemas/" + name}} }

func list(of object, more ...member) object {
	return object{{"type", "array"}, {"items", of}}.with(more...)
}

func text(more ...member) object   { return object{{"type", "string"}}.with(more...) }
func number(more ...member) object { return object{{"type", "number"}}.with(more...) }

func whole(more ...member) object {
	return object{{"type", "integer"}, {"minimum", 0}}.with(more...)
}

func anyOf(schemas ...object) object { return object{{"anyOf", schemas}} }

// size returns the members that limit the length of a list.
func size(least, maxItems int) []member { return []member{{"minItems", least}, {"maxItems", maxItems}} }

// eg returns the member with the examples of a schema.
func eg(values ...any) member { return member{"examples", values} }

func oneOf(values ...string) member { return member{"enum", values} }

// truth returns the schema of a boolean that may also be 1 or 0.
func truth() object {
	return object{{"type", []string{"boolean", "number"}}, {"enum", []any{true, false, 1, 0}}}
}

var (
	anything = object{}
	boolean  = object{{"type", "boolean"}}
	share    = number(member{"minimum", 0}, member{"maximum", 1})
	degrees  = func(limit int) object { return number(member{"minimum", -limit}, member{"maximum", limit}) }
	id       = text(member{"maxLength", call.MaxIDBytes})
	name     = text(member{"maxLength", call.MaxNameBytes})
	language = text(oneOf(languages...))
	when     = text(member{"format", "date-time"}, eg("2026-11-21T18:00:00.000000Z"))
	address  = text(eg("https://pictures.example/dragonfly.jpg"))
	appID    = object{{"type", []string{"string", "null"}}}
	hex32    = text(member{"pattern", "^[0-9a-f]{32}$"}, eg("aaa03c23b3724a16a56b629203edc62c"))
	hex64    = text(member{"pattern", "^[0-9a-f]{64}$"})
	crop     = list(share, size(4, 4)...)

	cropAsked = list(share, member{"maxItems", 4})
	languages = lang.Codes()
)
