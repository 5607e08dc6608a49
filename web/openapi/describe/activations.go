package describe

// activations are what tells where in a picture a model sees concepts.
var activations = []member{
	{"Activations", closed("Where a model sees concepts in a picture: how much of each cell of a grid speaks for each.",
		always("box", list(share, size(4, 4)...), "Where the grid lies: the part of the upright picture that the model saw, in fractions of its height and width: top, left, bottom, right."),
		always("width", whole(), "Cells across."), always("height", whole(), "Cells down."),
		always("concepts", list(closed("",
			always("id", id, ""),
			always("values", list(share), "One for each cell, row by row: 1 where most speaks for the concept, 0 where nothing does. They compare cells of one concept, and are no probabilities."))),
			"In the order of the request."))},
	{"ActivationsOutput", closed("What became of one input.",
		always("input_id", id, "As it was given, or made up."),
		always("status", ref("Status"), ""),
		maybe("activations", ref("Activations"), "Absent for an input that failed."))},
	{"ActivationsAnswer", answer("", always("outputs", list(ref("ActivationsOutput")), "One for each input, in their order."))},
	{"ActivationsRequest", record("",
		always("inputs", list(record("A picture, or the id alone of an input that the application keeps.",
			maybe("id", id, "Comes back with the output."),
			maybe("data", record("", always("image", ref("PictureSource"), "")), "")), size(1, limits["maxActivatedInputs"])...), ""),
		always("concepts", list(id, size(1, limits["maxActivations"])...), "Ids of concepts of the model."))},
}
