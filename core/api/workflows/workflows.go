// Package workflows has the calls about workflows. A workflow is a list of models. The calls create, list and delete workflows, and run
// pictures through all models of one. A run analyses each picture once. Public workflows cannot be changed.
package workflows

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/form"
	"github.com/sightline-dev/sightline/core/partition"
)

// publicWorkflow is the id of the only public workflow: the general model.
const publicWorkflow = "General"

// workflow is a workflow as answers show it.
type workflow struct {
	id      string
	created time.Time
	nodes   []log.WorkflowNode
	public  bool
}

func generalWorkflow(x *call.Call) workflow {
	m := x.Net.Models.General()
	return workflow{publicWorkflow, m.CreatedAt, []log.WorkflowNode{{ID: "general", Model: m.ID, Version: m.VersionID}}, true}
}

func ownWorkflow(w *catalog.Workflow) workflow {
	return workflow{w.ID, w.Created.Time(), w.Nodes, false}
}

// workflowOfPath finds the workflow in the path. For a custom workflow it also returns the
// record.
func workflowOfPath(x *call.Call) (workflow, *catalog.Workflow, error) {
	id := x.IDs["workflow_id"]
	if id == publicWorkflow {
		return generalWorkflow(x), nil, nil
	}
	v := x.View()
	own, err := v.Workflow(id)
	return ownWorkflow(&own), &own, call.ReplaceNotFound(err, call.UnknownIDError("workflow_id", id))
}

// Create creates all workflows in a call, or none if one is invalid.
func Create(x *call.Call) error {
	elements, n, err := x.Body.LimitedObjects("workflows", call.MaxInputs, call.ErrWorkflow)
	if err != nil {
		return err
	}
	v := x.View()
	ids := make([]string, 0, n)
	bodies := make([]log.Body, 0, n)
	for o, err := range elements {
		if err != nil {
			return call.Refuse(call.ErrWorkflow, err)
		}
		create, err := newWorkflow(x, v, o)
		if err != nil {
			return err
		}
		if slices.Contains(ids, create.ID) {
			return call.Refusef(call.ErrWorkflow, "%s: duplicate value %q.", o.MemberPath("id"), create.ID)
		}
		ids = append(ids, create.ID)
		bodies = append(bodies, create)
	}
	verdicts, err := x.Submit(nil, bodies...)
	if err != nil {
		return err
	}
	for i, got := range verdicts {
		if got.Code == fold.Duplicate {
			return duplicateWorkflow(ids[i])
		}
	}
	after := x.View()
	workflows := make([]workflow, 0, n)
	for _, id := range ids {
		own, err := after.Workflow(id)
		if err != nil {
			return err
		}
		workflows = append(workflows, ownWorkflow(&own))
	}
	return writeWorkflows(x, workflows)
}

func duplicateWorkflow(id string) error {
	return call.Refusef(call.ErrWorkflowTaken, "workflow_id '%s' already exists.", id)
}

// newWorkflow reads one workflow to create. Its models must exist, and so must each fixed
// version. They need not be trained yet.
func newWorkflow(x *call.Call, v *partition.View, o call.Object) (*log.WorkflowCreate, error) {
	id, err := call.NewThingID(x, call.ErrWorkflow, o)
	if err != nil {
		return nil, err
	}
	if _, err := v.Workflow(id); err == nil || id == publicWorkflow {
		return nil, duplicateWorkflow(id)
	} else if !errors.Is(err, catalog.ErrNotFound) {
		return nil, err
	}
	nodes, n, err := o.Objects("nodes")
	if err != nil {
		return nil, call.Refuse(call.ErrWorkflow, err)
	}
	if !form.IsModelCount(n) {
		return nil, call.Refusef(call.ErrWorkflow, "%s: must have 1 to %d elements, not %d.", o.MemberPath("nodes"), call.MaxWorkflowModels, n)
	}
	create := &log.WorkflowCreate{ID: id}
	for node, err := range nodes {
		if err != nil {
			return nil, call.Refuse(call.ErrWorkflow, err)
		}
		step, err := readNode(node)
		if err != nil {
			return nil, call.Refuse(call.ErrWorkflow, err)
		}
		if _, err := show.FindModel(x, v, step.Model, step.Version); errors.Is(err, call.ErrPath) {
			return nil, call.Refuse(call.ErrWorkflow, err)
		} else if err != nil {
			return nil, err
		}
		create.Nodes = append(create.Nodes, step)
	}
	return create, nil
}

// readNode reads a step of a workflow. Without an id the step has the id of its model.
func readNode(o call.Object) (log.WorkflowNode, error) {
	var err error
	m := call.Read(&err, o.Object, "model")
	version := call.Read(&err, m.Object, "model_version")
	step := log.WorkflowNode{ID: call.Read(&err, o.Text, "id"), Model: call.Read(&err, m.Text, "id"), Version: call.Read(&err, version.Text, "id")}
	switch {
	case err != nil:
		return step, err
	case step.Model == "":
		return step, call.Refusef(call.ErrWorkflow, "%s is missing.", m.MemberPath("id"))
	}
	step.ID = cmp.Or(step.ID, step.Model)
	return step, call.CheckID(call.ErrWorkflow, o.MemberPath("id"), step.ID)
}

func writeWorkflows(x *call.Call, all []workflow) error {
	return x.OK(func(w *jsonio.Writer) {
		w.List("workflows", len(all), func(i int) { writeWorkflow(x, w, &all[i], true) })
	})
}

func writeWorkflow(x *call.Call, w *jsonio.Writer, f *workflow, nodes bool) {
	w.Object()
	w.Text("id", f.id)
	if f.public {
		show.WritePublicApp(x, w)
	} else {
		w.Text("app_id", x.App.ID)
	}
	w.Text("created_at", show.Timestamp(f.created))
	if nodes {
		w.List("nodes", len(f.nodes), func(i int) { writeNode(x, w, &f.nodes[i]) })
	}
	w.End('}')
}

// writeNode writes a step. For a key that may not read models it writes only the model's id.
func writeNode(x *call.Call, w *jsonio.Writer, n *log.WorkflowNode) {
	w.Object()
	w.Text("id", n.ID)
	w.ObjectMember("model")
	w.Text("id", n.Model)
	if n.Version != "" && x.Shows(auth.ModelsGet) {
		w.ObjectMember("model_version")
		w.Text("id", n.Version)
		w.End('}')
	}
	w.End('}')
	w.End('}')
}

// List lists the application's workflows in the order of their creation.
func List(x *call.Call) error {
	p, err := x.Page()
	if err != nil {
		return err
	}
	v := x.View()
	var all []workflow
	if err := v.Workflows(func(f catalog.Workflow) bool {
		all = append(all, ownWorkflow(&f))
		return true
	}); err != nil {
		return err
	}
	return writeWorkflows(x, call.PageRows(all, p))
}

// ListPublic lists the public workflows.
func ListPublic(x *call.Call) error {
	p, err := x.Page()
	if err != nil {
		return err
	}
	return writeWorkflows(x, call.PageRows([]workflow{generalWorkflow(x)}, p))
}

// Read answers with one workflow.
func Read(x *call.Call) error {
	f, _, err := workflowOfPath(x)
	if err != nil {
		return err
	}
	return x.OK(func(w *jsonio.Writer) {
		w.Name("workflow")
		writeWorkflow(x, w, &f, true)
	})
}

// Delete deletes a custom workflow.
func Delete(x *call.Call) error {
	_, own, err := workflowOfPath(x)
	if err != nil {
		return err
	}
	if own == nil {
		return call.Refusef(call.ErrWorkflow, "workflow_id '%s' is public and cannot be changed.", publicWorkflow)
	}
	return x.Done(&log.WorkflowDelete{Workflow: own.Dot})
}
