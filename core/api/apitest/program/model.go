package program

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/api/apitest"
)

// model is the reference model of an application's inputs from a client's view: a list, decoded JSON,
// and a second implementation of the rules of the interface.
type model struct {
	inputs []*modelInput // in the order of creation
}

type modelInput struct {
	id, url string // url is empty if the client sent bytes
	code    int
	labels  map[string]bool
	meta    any // absent: none
	geo     any // nil: none
}

// absent is a missing value. null is a value.
type absent struct{}

// addresses are URLs of pictures and the codes after their downloads.
var addresses = []struct {
	url  string
	code int
}{
	{"http://pictures.test/red.png", 30000},
	{"http://pictures.test/blue.png", 30000},
	{"http://pictures.test/half.png?1", 30000},
	{"http://pictures.test/gone.png", 30002},
	{"http://pictures.test/gone.png?2", 30002},
	{"http://pictures.test/torn.png", 30300},
	{"http://pictures.test/text.html", 30101},
}

func (m *model) find(id string) *modelInput {
	for _, in := range m.inputs {
		if in.id == id {
			return in
		}
	}
	return nil
}

func (in *modelInput) hasFailed() bool { return in.code != 30000 && in.code != 30001 }

func (m *model) delete(in *modelInput) {
	m.inputs = slices.DeleteFunc(m.inputs, func(o *modelInput) bool { return o == in })
}

// add adds an input and returns its status.
func (m *model) add(in *modelInput, allowDuplicate bool) int {
	var replaced []*modelInput
	if other := m.find(in.id); other != nil {
		if !other.hasFailed() {
			return 30100
		}
		replaced = append(replaced, other)
	}
	if in.url != "" && !allowDuplicate {
		for _, other := range m.inputs {
			switch {
			case other.url != in.url:
			case !other.hasFailed():
				return 30100
			default:
				replaced = append(replaced, other)
			}
		}
	}
	for _, other := range replaced {
		m.delete(other)
	}
	m.inputs = append(m.inputs, in)
	return in.code
}

// step completes every download.
func (m *model) step() {
	for _, in := range m.inputs {
		if in.code != 30001 {
			continue
		}
		for _, a := range addresses {
			if a.url == in.url {
				in.code = a.code
			}
		}
	}
}

// patch changes an input as the data of a PATCH requires.
func (in *modelInput) patch(action string, labels map[string]bool, meta, geo any) {
	switch action {
	case "remove":
		for id := range labels {
			delete(in.labels, id)
		}
	case "overwrite":
		if labels != nil {
			in.labels = map[string]bool{}
		}
		fallthrough
	default:
		maps.Copy(in.labels, labels)
	}
	if _, isAbsent := meta.(absent); !isAbsent {
		in.meta, _ = patchMeta(in.meta, meta, action, 0)
	}
	if geo != nil {
		in.geo = geo
		if action == "remove" {
			in.geo = nil
		}
	}
}

// implied marks an object that a patch created for its members. The object exists while it has a member.
const implied = "\x00implied"

// patchMeta returns the result of a PATCH on stored, and reports whether it is a change.
func patchMeta(stored, sent any, action string, depth int) (any, bool) {
	switch sent := sent.(type) {
	case nil:
		return stored, false
	case map[string]any:
		if len(sent) == 0 {
			if depth == 0 || action == "remove" {
				return stored, false
			}
			return map[string]any{}, true
		}
		old, was := stored.(map[string]any)
		out, changed := maps.Clone(old), false
		_, nothing := stored.(absent)
		if out == nil {
			out = map[string]any{}
			if nothing {
				out[implied] = true
			}
		}
		for name, v := range sent {
			previous, ok := old[name]
			if !ok {
				previous = absent{}
			}
			value, did := patchMeta(previous, v, action, depth+1)
			if _, isAbsent := value.(absent); isAbsent {
				delete(out, name)
				continue // removing a missing member creates nothing
			}
			if did {
				out[name], changed = value, true
			}
		}
		switch {
		case !was && !changed:
			return stored, false
		case !was && !nothing:
			return stripImplied(out), true // the object replaces the whole other value
		case len(out) == 1 && out[implied] != nil:
			return absent{}, true
		}
		return out, true
	case []any:
		old, was := stored.([]any)
		switch {
		case action == "overwrite", !was && (action == "merge" || len(sent) > 0):
			return sent, true
		case len(sent) == 0 && action == "merge":
			return sent, true
		case len(sent) == 0:
			return stored, false
		}
		return append(slices.Clone(old), sent...), true
	case bool:
		if sent && action == "remove" {
			return absent{}, true
		}
	}
	return sent, true
}

// json returns the input as answers show it, without names and times.
func (in *modelInput) json(code int) map[string]any {
	image := map[string]any{}
	if in.url != "" {
		image["url"] = in.url
	}
	data := map[string]any{"image": image}
	if len(in.labels) > 0 {
		var concepts []any
		for _, id := range slices.Sorted(maps.Keys(in.labels)) {
			value := 0.0
			if in.labels[id] {
				value = 1
			}
			concepts = append(concepts, map[string]any{"id": id, "value": value})
		}
		data["concepts"] = concepts
	}
	if _, isAbsent := in.meta.(absent); !isAbsent {
		data["metadata"] = stripImplied(in.meta)
	}
	if in.geo != nil {
		data["geo"] = map[string]any{"geo_point": in.geo}
	}
	if code == 0 {
		code = in.code
	}
	return map[string]any{"id": in.id, "data": data, "status": float64(code)}
}

// stripImplied returns v without the marks of implied objects.
func stripImplied(v any) any {
	object, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := make(map[string]any, len(object))
	for name, v := range object {
		if name != implied {
			out[name] = stripImplied(v)
		}
	}
	return out
}

// plain removes data that the model does not have from an input in an answer: texts, times, hosted
// URLs.
func plain(in map[string]any) map[string]any {
	delete(in, "created_at")
	in["status"] = in["status"].(map[string]any)["code"]
	data := in["data"].(map[string]any)
	image := data["image"].(map[string]any)
	if url, _ := image["url"].(string); strings.Contains(url, "/hosted/") {
		delete(image, "url")
	}
	if concepts, ok := data["concepts"].([]any); ok {
		for _, c := range concepts {
			delete(c.(map[string]any), "name")
			delete(c.(map[string]any), "app_id")
		}
	}
	return in
}

// generator makes the parts of random requests.
type generator struct{ *rand.Rand }

func (r generator) id() string { return string(rune('a' + r.IntN(6))) }

func (r generator) labels() map[string]bool {
	if r.IntN(3) == 0 {
		return nil
	}
	labels := map[string]bool{}
	for range 1 + r.IntN(3) {
		labels[[]string{"cat", "dog", "ai_red", "long name"}[r.IntN(4)]] = r.IntN(2) == 0
	}
	return labels
}

func (r generator) meta(depth int) any {
	switch n := r.IntN(8); {
	case n < 3 && depth < 3:
		out := map[string]any{}
		for range r.IntN(3) {
			out[string(rune('k'+r.IntN(3)))] = r.meta(depth + 1)
		}
		return out
	case n == 3:
		out := []any{}
		for range r.IntN(3) {
			out = append(out, float64(r.IntN(3)))
		}
		return out
	case n == 4:
		return nil
	case n == 5:
		return r.IntN(2) == 0
	case n == 6:
		return "text"
	}
	return float64(r.IntN(4))
}

func (r generator) geo() any {
	if r.IntN(2) == 0 {
		return nil
	}
	return map[string]any{"longitude": float64(r.IntN(360) - 180), "latitude": float64(r.IntN(180) - 90)}
}

// data returns the member data of a request.
func (r generator) data(labels map[string]bool, meta, geo any) map[string]any {
	data := map[string]any{}
	if labels != nil {
		concepts := []any{}
		for _, id := range slices.Sorted(maps.Keys(labels)) {
			c := map[string]any{"id": id}
			switch {
			case !labels[id]:
				c["value"] = []any{false, 0, 0.0}[r.IntN(3)]
			case r.IntN(2) == 0:
				c["value"] = []any{true, 1, nil}[r.IntN(3)]
			}
			concepts = append(concepts, c)
		}
		data["concepts"] = concepts
	}
	if _, isAbsent := meta.(absent); !isAbsent {
		data["metadata"] = meta
	}
	if geo != nil {
		if data["geo"] = geo; r.IntN(2) == 0 {
			data["geo"] = map[string]any{"geo_point": geo}
		}
	}
	return data
}

func (r generator) picture() string {
	colour := []string{"red.png", "blue.png", "white.png"}[r.IntN(3)]
	return base64.StdEncoding.EncodeToString(apitest.Picture(colour))
}

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("%v: %v", v, err)) // generated values are valid JSON
	}
	return b
}
