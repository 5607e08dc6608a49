package models

import (
	"cmp"
	"errors"
	"slices"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// Create creates a model and its first version, at 21102. The request has the model as model or
// as the only element of models. If the body has only ids, Create deletes these models, since one client deletes
// a list of models in this way.
func Create(x *call.Call) error {
	if x.Body.Has("ids") && !x.Body.Has("model") && !x.Body.Has("models") {
		if err := auth.NeedModelsDelete.Check(x.Principal.Scopes); err != nil {
			return err
		}
		return deleteListed(x)
	}
	o, err := oneModel(x)
	if err != nil {
		return err
	}
	create := &log.ModelCreate{}
	if create.ID, err = call.NewThingID(x, call.ErrModelQuery, o); err != nil {
		return err
	}
	if create.Name, err = o.Text("name"); err != nil {
		return call.Refuse(call.ErrModelQuery, err)
	}
	create.Name = cmp.Or(create.Name, create.ID)
	if err := call.CheckName(call.ErrModelQuery, o, create.Name); err != nil {
		return err
	}
	if create.Concepts, create.Config, err = outputInfo(x, o); err != nil {
		return err
	}
	if create.Version, err = x.NewID(); err != nil {
		return err
	}
	_, err = show.FindModel(x, x.View(), create.ID, "")
	switch {
	case err == nil:
		return duplicateModel(create.ID)
	case !errors.Is(err, call.ErrPath):
		return err
	}
	verdicts, err := x.Submit(nil, create)
	if err != nil {
		return err
	}
	if verdicts[0].Code == fold.Duplicate {
		return duplicateModel(create.ID)
	}
	return answerOwn(x, create.ID)
}

func duplicateModel(id string) error {
	return call.Refusef(call.ErrIDTaken, "model_id '%s' already exists.", id)
}

// oneModel returns the model in a request that creates one.
func oneModel(x *call.Call) (call.Object, error) {
	if !x.Body.Has("models") {
		o, err := x.Body.Object("model")
		if err == nil && !x.Body.Has("model") {
			err = call.Refusef(call.ErrModelQuery, "model is missing.")
		}
		return o, call.Refuse(call.ErrModelQuery, err)
	}
	elements, n, err := x.Body.Objects("models")
	if err != nil {
		return call.Object{}, call.Refuse(call.ErrModelQuery, err)
	}
	if n != 1 {
		return call.Object{}, call.Refusef(call.ErrModelQuery, "models: only one model per call, not %d.", n)
	}
	for o, err := range elements {
		return o, call.Refuse(call.ErrModelQuery, err)
	}
	return call.Object{}, nil
}

// outputInfo reads the concepts and the settings of a model in a request.
func outputInfo(x *call.Call, o call.Object) ([]string, []log.Setting, error) {
	var err error
	info := call.Read(&err, o.Object, "output_info")
	data := call.Read(&err, info.Object, "data")
	if err != nil {
		return nil, nil, call.Refuse(call.ErrModelQuery, err)
	}
	ids, err := conceptRefs(x, data, "concepts")
	if err != nil {
		return nil, nil, err
	}
	config, err := info.Object("output_config")
	if err != nil {
		return nil, nil, call.Refuse(call.ErrModelArgument, err)
	}
	set, err := show.ReadSettings(config)
	return ids, set, err
}

// conceptRefs reads a list of concept ids and removes duplicates. Custom concepts
// may be new. Public concepts must exist.
func conceptRefs(x *call.Call, o call.Object, name string) ([]string, error) {
	refs, n, err := o.Objects(name)
	if err != nil {
		return nil, call.Refuse(call.ErrModelQuery, err)
	}
	if n > call.MaxModelConcepts {
		return nil, call.Refusef(call.ErrModelQuery, "%s: at most %d concepts are allowed.", o.MemberPath(name), call.MaxModelConcepts)
	}
	var ids []string
	seen := make(map[string]bool, n)
	for ref, err := range refs {
		if err != nil {
			return nil, call.Refuse(call.ErrModelQuery, err)
		}
		id, err := ref.Text("id")
		if err != nil {
			return nil, call.Refuse(call.ErrModelQuery, err)
		}
		if _, public := x.Net.Concepts[id]; !public {
			if err := call.CheckConceptID(call.ErrModelQuery, ref.MemberPath("id"), id); err != nil {
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

// answerOwn answers with the custom model that has an id.
func answerOwn(x *call.Call, id string) error {
	v := x.View()
	m, err := show.FindModel(x, v, id, "")
	if err != nil {
		return err
	}
	return answerModel(x, v, m, show.InfoMessage)
}

// Patch changes all models in a call, or none if one change is invalid. It overwrites names and
// settings. The action determines whether concepts are merged, removed or overwritten. Without an
// action they are merged. The action remove resets settings to their defaults.
func Patch(x *call.Call) error {
	action, err := show.ReadAction(x, show.Actions)
	if err != nil {
		return err
	}
	elements, n, err := x.Body.LimitedObjects("models", call.MaxInputs, call.ErrModelQuery)
	if err != nil {
		return err
	}
	v := x.View()
	ids := make([]string, 0, n)
	bodies := make([]log.Body, 0, n)
	for o, err := range elements {
		if err != nil {
			return call.Refuse(call.ErrModelQuery, err)
		}
		id, err := o.Text("id")
		if err != nil {
			return call.Refuse(call.ErrModelQuery, err)
		}
		if slices.Contains(ids, id) {
			return call.Refusef(call.ErrModelQuery, "%s: duplicate value %q.", o.MemberPath("id"), id)
		}
		patch, err := modelPatch(x, v, o, id, action)
		if err != nil {
			return err
		}
		ids = append(ids, id)
		bodies = append(bodies, patch)
	}
	return submitPatches(x, bodies, ids, func(models []show.Model) error { return writeModels(x, models) })
}

// submitPatches submits patches and answers with the changed models.
func submitPatches(x *call.Call, bodies []log.Body, ids []string, answer func([]show.Model) error) error {
	verdicts, err := x.Submit(nil, bodies...)
	if err != nil {
		return err
	}
	for i, got := range verdicts {
		if got.Code == fold.Gone {
			return call.UnknownIDError("model_id", ids[i])
		}
	}
	v := x.View()
	models := make([]show.Model, 0, len(ids))
	for _, id := range ids {
		m, err := show.FindModel(x, v, id, "")
		if err != nil {
			return err
		}
		models = append(models, m)
	}
	return answer(models)
}

// modelPatch reads the changes of one model.
func modelPatch(x *call.Call, v *partition.View, o call.Object, id string, action show.Action) (*log.ModelPatch, error) {
	m, err := show.FindModel(x, v, id, "")
	if err != nil {
		return nil, err
	}
	if m.Public != nil {
		return nil, show.RefusePublic(id)
	}
	patch := &log.ModelPatch{Model: m.Custom.Dot}
	name, err := o.Text("name")
	if err != nil {
		return nil, call.Refuse(call.ErrModelQuery, err)
	}
	if name != "" {
		patch.Name = &name
	}
	if err := call.CheckName(call.ErrModelQuery, o, name); err != nil {
		return nil, err
	}
	listed, config, err := outputInfo(x, o)
	if err != nil {
		return nil, err
	}
	patch.Config = config
	if action == show.Remove {
		patch.Config = show.ResetSettings(config)
	}
	// An empty list overwrites, an absent list does not.
	if info := o.Get("output_info").Get("data").Get("concepts"); action == show.Overwrite && info.Kind() != jsonio.Array {
		action = show.Merge
	}
	return patch, changeConcepts(x, patch, m.Custom, listed, action)
}

// changeConcepts sets the concepts that a patch adds and removes. If there are any, the patch creates another
// version of the model.
func changeConcepts(x *call.Call, patch *log.ModelPatch, m *catalog.Model, listed []string, action show.Action) error {
	now := show.ModelConcepts(m)
	has := make(map[string]bool, len(now))
	for _, id := range now {
		has[id] = true
	}
	wanted := make(map[string]bool, len(listed))
	for _, id := range listed {
		wanted[id] = true
		if action != show.Remove && !has[id] {
			patch.Add = append(patch.Add, id)
		}
	}
	for _, id := range now {
		if action == show.Remove && wanted[id] || action == show.Overwrite && !wanted[id] {
			patch.Remove = append(patch.Remove, id)
		}
	}
	if len(now)+len(patch.Add) > call.MaxModelConcepts {
		return call.Refusef(call.ErrModelQuery, "A model can have at most %d concepts.", call.MaxModelConcepts)
	}
	if len(patch.Add)+len(patch.Remove) == 0 {
		return nil
	}
	var err error
	patch.Version, err = x.NewID()
	return err
}

// PatchConcepts changes the concepts of one model. It is the first published form of a patch.
func PatchConcepts(x *call.Call) error {
	action, err := show.ReadAction(x, show.ConceptActions)
	if err != nil {
		return err
	}
	listed, err := conceptRefs(x, x.Body, "concepts")
	if err != nil {
		return err
	}
	if x.Body.Get("concepts").Kind() != jsonio.Array {
		return call.Refusef(call.ErrModelQuery, "concepts is missing.")
	}
	_, m, err := show.CustomModel(x)
	if err != nil {
		return err
	}
	patch := &log.ModelPatch{Model: m.Custom.Dot}
	if err := changeConcepts(x, patch, m.Custom, listed, action); err != nil {
		return err
	}
	return submitPatches(x, []log.Body{patch}, []string{m.Custom.ID}, func(models []show.Model) error {
		return x.OK(func(w *jsonio.Writer) {
			w.Name("model")
			show.WriteModel(x, w, &show.ModelInfo{Model: models[0]})
		})
	})
}

// DeleteMany deletes the models in ids. With delete_all or an empty body it deletes all models of the application.
func DeleteMany(x *call.Call) error {
	switch all, err := x.Body.Flag("delete_all"); {
	case err != nil:
		return call.Refuse(call.ErrModelQuery, err)
	case all || x.Body.Value.Len() == 0:
		return x.Audit("models.delete_all", deleteAll(x))
	}
	return deleteListed(x)
}

// deleteAll deletes every model of the application that the call sees.
func deleteAll(x *call.Call) error {
	var bodies []log.Body
	err := x.View().Models(func(m catalog.Model) bool {
		bodies = append(bodies, &log.ModelDelete{Model: m.Dot})
		return true
	})
	if err != nil {
		return err
	}
	return x.Done(bodies...)
}

// deleteListed deletes the models in the body's ids. Like a deletion of inputs, it ignores unknown ids.
func deleteListed(x *call.Call) error {
	ids, err := call.IDList(call.ErrModelQuery, x.Body, "ids")
	if err != nil {
		return err
	}
	v := x.View()
	var bodies []log.Body
	var missing []string
	for _, id := range ids {
		m, err := show.FindModel(x, v, id, "")
		if errors.Is(err, call.ErrPath) {
			missing = append(missing, id)
			continue
		}
		if err != nil {
			return err
		}
		if m.Public != nil {
			return show.RefusePublic(id)
		}
		bodies = append(bodies, &log.ModelDelete{Model: m.Custom.Dot})
	}
	if err := x.Absent(call.ErrPath, missing); err != nil {
		return err
	}
	return x.Done(bodies...)
}

// Delete deletes a custom model.
func Delete(x *call.Call) error {
	_, m, err := show.CustomModel(x)
	if err != nil {
		return err
	}
	return x.Done(&log.ModelDelete{Model: m.Custom.Dot})
}
