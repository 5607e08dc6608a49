package describe

import "github.com/sightline-dev/sightline/core/api/call"

// activations holds the schemas of the call that returns where in a picture a model recognises concepts.
var activations = []member{
	{"Activations", closedRecord("Where in a picture a model recognises concepts, as a value for each cell of a grid.",
		always("box", list(share, size(4, 4)...),
			"Area of the grid: the part of the upright picture that the model used. Top, left, bottom, right, as fractions of its height "+
				"and width."),
		always("width", whole(), "Number of columns."), always("height", whole(), "Number of rows."),
		always("concepts", list(closedRecord("",
			always("id", id, ""),
			always("values", list(share),
				"One value for each cell, row by row: 1 where the evidence for the concept is strongest, 0 where there is none. "+
					"Values compare the cells of one concept; they are not probabilities."))),
			"In the order of the request."))},
	{"ActivationsOutput", closedRecord("Result for one input.",
		always("input_id", id, "The ID from the request, or a generated one."),
		always("status", ref("Status"), ""),
		maybe("activations", ref("Activations"), "Omitted for an input that failed."))},
	{"ActivationsAnswer", answer("", always("outputs", list(ref("ActivationsOutput")), "One for each input, in the order of the request."))},
	{"ActivationsRequest", record("",
		always("inputs", list(record("A picture, or only the ID of a stored input.",
			maybe("id", id, "Returned with the output."),
			maybe("data", record("", always("image", ref("PictureSource"), "")), "")), size(1, call.MaxActivatedInputs)...), ""),
		always("concepts", list(id, size(1, call.MaxActivations)...), "IDs of concepts of the model."))},
}
