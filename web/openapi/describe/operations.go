package describe

import "github.com/sightline-dev/sightline/core/search"

// tags returns the groups of operations, in the order of the documentation.
func tags() []object {
	var all []object
	for _, t := range [][2]string{
		{"Predict", "Run pictures through a model: up to 128 per call, each with its own status."},
		{"Inputs", "Pictures stored in an application. Each is analysed once; then searches and trainings can use it."},
		{"Models", "Public models, and custom models that are trained on labelled inputs."},
		{
			"Concepts",
			"Models predict concepts, and users label pictures with them. Public concepts have names in 23 languages; an application can " +
				"add custom concepts.",
		},
		{"Searches", "Find inputs by content, label, metadata, location or similarity."},
		{"Workflows", "Run pictures through several models at once."},
		{
			"Replicas",
			"Devices, newest operations, sync status, pending operations and conflicts of a replica: a copy of an application at an edge or in a browser. " +
				"The origin answers the status and the pending operations with 404.",
		},
		{
			"Sync protocol",
			"The protocol between an origin and its replicas, for programs that implement a replica. sync/README.md defines its messages " +
				"byte by byte. Other programs use the calls above, at the origin or at a replica.",
		},
		{
			"Access",
			"Access tokens, session tokens, applications and API keys, for scripts. People create applications and API keys on the web pages.",
		},
	} {
		all = append(all, object{{"name", t[0]}, {"description", t[1]}})
	}
	return all
}

// operations describes the endpoints, in the order of core/api's table.
var operations = []operation{
	{
		method: "POST", path: "/models/{model_id}/outputs", id: "predict", tag: "Predict",
		summary: "Predict",
		note: "Runs pictures and videos through a model: a public one, or the latest trained version of a custom one. " +
			"If a picture cannot be downloaded, only that item fails. For a video, the output has a frame for each `sample_ms` of its time.",
		request: "PredictRequest", answer: "OutputsAnswer", items: "OutputsAnswer", writes: true,
		examples: []example{
			{"a picture by URL", `{"inputs":[{"data":{"image":{"url":"https://pictures.example/dragonfly.jpg"}}}]}`},
			{"a picture in base64", `{"inputs":[{"id":"red","data":{"image":{"base64":"` + redPNG + `"}}}]}`},
			{
				"a GIF as a video, with a frame every two seconds",
				`{"inputs":[{"data":{"video":{"base64":"` + pixelGIF + `"}}}],"model":{"output_info":{"output_config":{"sample_ms":2000,"max_concepts":3}}}}`,
			},
			{
				"German names, at most five, half of the picture",
				`{"inputs":[{"data":{"image":{"base64":"` + redPNG + `","crop":[0,0,0.5,1]}}}],"model":{"output_info":{"output_config":{"language":"de","max_concepts":5,"min_value":0.5}}}}`,
			},
		},
	},
	{
		method: "POST", path: "/models/{model_id}/versions/{version_id}/outputs", id: "predictWithVersion", tag: "Predict",
		summary: "Predict with a version",
		note: "Runs pictures and videos through one version of a model. Use it to compare versions, or to keep a program on a version " +
			"while others are trained.",
		request: "PredictRequest", answer: "OutputsAnswer", items: "OutputsAnswer", writes: true,
		examples: []example{{"a picture by URL", `{"inputs":[{"data":{"image":{"url":"https://pictures.example/dragonfly.jpg"}}}]}`}},
	},
	{
		method: "POST", path: "/models/{model_id}/activations", id: "readActivations", tag: "Predict",
		summary: "Get concept activations",
		note: "Shows where in a picture a model recognises a concept, as a value for each cell of a grid. " +
			"Works for the general and the food model, and for the latest trained version of a custom model. " +
			"To use a stored input, send its ID; the key then needs Inputs:Get.",
		request: "ActivationsRequest", answer: "ActivationsAnswer", items: "ActivationsAnswer", writes: true,
		examples: []example{
			{"a picture by URL", `{"inputs":[{"data":{"image":{"url":"https://pictures.example/dragonfly.jpg"}}}],"concepts":["ai_2k5mzj3r"]}`},
			{"a stored input", `{"inputs":[{"id":"dragonfly"}],"concepts":["ai_2k5mzj3r"]}`},
		},
	},

	{
		method: "POST", path: "/inputs", id: "addInputs", tag: "Inputs",
		summary: "Add inputs",
		note: "Stores pictures in the application. For a picture with a URL, the call returns 30001 at once and the server downloads and " +
			"analyses it in the background. A picture in base64 is analysed during the call. An item with regions is refused. Videos cannot be " +
			"stored: they fail with 31101.",
		request: "AddInputs", answer: "InputItemsAnswer", items: "InputItemsAnswer", writes: true,
		examples: []example{
			{"by URL, with labels, metadata and a location", `{"inputs":[{"id":"dragonfly","data":{"image":{"url":"https://pictures.example/dragonfly.jpg"},"concepts":[{"id":"insect","value":true},{"id":"bird","value":false}],"metadata":{"album":"pond","year":2016},"geo":{"geo_point":{"longitude":13.4,"latitude":52.5}}}}]}`},
			{"in base64", `{"inputs":[{"id":"red","data":{"image":{"base64":"` + redPNG + `"},"concepts":[{"id":"warm"},{"id":"cold","value":false}]}},{"id":"blue","data":{"image":{"base64":"` + bluePNG + `"},"concepts":[{"id":"warm","value":false},{"id":"cold"}]}}]}`},
			{"part of the same picture", `{"inputs":[{"data":{"image":{"url":"https://pictures.example/dragonfly.jpg","crop":[0.2,0.4,0.6,0.8],"allow_duplicate_url":true}}}]}`},
		},
	},
	{
		method: "GET", path: "/inputs", id: "listInputs", tag: "Inputs", page: true,
		summary: "List inputs",
		note: "Lists the inputs of the application in order of creation. If the download of an input on the page failed, the response " +
			"has HTTP 207.",
		answer: "InputsAnswer", items: "InputsAnswer", query: []object{show},
	},
	{
		method: "PATCH", path: "/inputs", id: "patchInputs", tag: "Inputs", writes: true,
		summary: "Change inputs",
		note: "Changes labels, metadata and locations of up to 128 inputs. An item that would change the picture, its URL, its crop or " +
			"its regions is refused.",
		request: "PatchInputs", answer: "InputItemsAnswer", items: "InputItemsAnswer",
		examples: []example{
			{"add a label", `{"action":"merge","inputs":[{"id":"dragonfly","data":{"concepts":[{"id":"insect","value":true}]}}]}`},
			{"remove a label", `{"action":"remove","inputs":[{"id":"dragonfly","data":{"concepts":[{"id":"insect"}]}}]}`},
			{"set metadata and a location", `{"action":"merge","inputs":[{"id":"dragonfly","data":{"metadata":{"album":"lake"},"geo":{"geo_point":{"longitude":8.5,"latitude":47.4}}}}]}`},
		},
	},
	{
		method: "DELETE", path: "/inputs", id: "deleteInputs", tag: "Inputs", writes: true,
		summary: "Delete inputs",
		note: "Deletes inputs with their labels. This cannot be undone. Unknown IDs are ignored. At a replica that is " +
			"not in sync, unknown IDs are an error (404), and nothing is deleted: the origin may have the inputs.",
		request: "DeleteInputs", answer: "Done",
		examples: []example{{"some", `{"ids":["dragonfly","red"]}`}, {"all", `{"delete_all":true}`}},
	},
	{
		method: "GET", path: "/inputs/status", id: "countInputs", tag: "Inputs",
		summary: "Count inputs by status",
		note:    "Counts the inputs of the application: analysed, waiting and failed. Use it to show the progress of an import.", answer: "CountsAnswer",
	},
	{
		method: "GET", path: "/inputs/{input_id}", id: "readInput", tag: "Inputs",
		summary: "Get an input",
		note: "Returns an input with its labels, metadata, location and status. The status is 30000 once the picture has been " +
			"analysed, and 30001 before.", answer: "InputAnswer", query: []object{show},
	},
	{
		method: "DELETE", path: "/inputs/{input_id}", id: "deleteInput", tag: "Inputs", writes: true,
		summary: "Delete an input",
		note:    "Deletes one input with its labels. This cannot be undone.", answer: "Done",
	},
	{
		method: "PATCH", path: "/inputs/{input_id}/data/concepts", id: "patchInputConcepts", tag: "Inputs", writes: true,
		summary: "Change the labels of an input",
		note: "Adds, replaces or removes labels of one input. This is an older form, from 2016. PATCH /inputs does the same for " +
			"several inputs.",
		request: "PatchConcepts", idle: true, answer: "InputAnswer",
		examples: []example{{"add a label", `{"action":"merge_concepts","concepts":[{"id":"insect","value":true}]}`}},
	},
	{
		method: "GET", path: "/inputs/{input_id}/outputs", id: "readInputOutputs", tag: "Inputs",
		summary: "Get the stored predictions of an input",
		note: "Returns the predictions of the general model that are stored with the input, with the corrections that users made. While the " +
			"analysis of the input is pending, the call waits for it, up to 1.5 seconds. Then the list is empty.", answer: "StoredOutputsAnswer",
	},
	{
		method: "PATCH", path: "/inputs/{input_id}/outputs", id: "patchInputOutputs", tag: "Inputs", writes: true,
		summary: "Correct the stored predictions of an input",
		note:    "Corrects predictions of the general model. Searches by predicted concepts use the corrected values.",
		request: "PatchOutputs", answer: "StoredOutputsAnswer",
		examples: []example{{"set a value", `{"action":"merge","outputs":[{"data":{"concepts":[{"id":"ai_2k5mzj3r","value":0.5}]}}]}`}},
	},
	{
		method: "GET", path: "/inputs/{input_id}/thumbnail", id: "readThumbnail", tag: "Inputs", picture: true,
		summary: "Get the thumbnail of an input",
		note: "Returns a small JPEG of the input, with its crop applied. The call fails with 404 until the picture has been analysed. " +
			"A browser may store the JPEG, but asks with `If-None-Match` before each use. If the JPEG is current, the answer is 304, which does " +
			"not count as a call.",
	},
	{
		method: "GET", path: "/inputs/{input_id}/rendition", id: "readRendition", tag: "Inputs", picture: true,
		summary: "Get a rendition of the picture of an input",
		note: "Returns a JPEG of the whole picture, upright, with at most 2,048 pixels on the longer side. Show it where a browser cannot draw " +
			"the original, such as a HEIC or TIFF file. The server makes the JPEG at the first request and caches it. The call fails with 404 until " +
			"the picture has been analysed. A browser may store the JPEG, as for the thumbnail.",
	},
	{
		method: "GET", path: "/inputs/{input_id}/source", id: "readSource", tag: "Inputs",
		summary: "Get the source of an input, for exports",
		note: "Returns what an export needs: the original URL of the input, the URL of its stored picture and the corrections of its " +
			"predictions.", answer: "SourceAnswer",
	},
	{
		method: "GET", path: "/inputs/{input_id}/history", id: "readHistory", tag: "Inputs", page: true,
		summary: "Get the history of an input",
		note: "Lists the operations that created and changed the input: who made them, when, and their entries in the log. For a " +
			"deleted input, the list has only the deletion.", answer: "HistoryAnswer",
	},

	{
		method: "GET", path: "/inputs/{input_id}/duplicates", id: "listDuplicates", tag: "Inputs", page: true,
		summary: "List the duplicates of an input",
		note: "Lists inputs that show the same as this input. They are sorted by tier, then by similarity; there are at most 1,000. " +
			"The tier `same_file` has equal bytes and crop. The tier `re_encoded` is one picture saved again in another format, " +
			"quality or size; the server compares fingerprints of the 24 most similar inputs. The tier `similar` has pictures so " +
			"similar that 9 of 10 show the same scene.",
		answer: "DuplicatesAnswer",
	},
	{
		method: "GET", path: "/duplicates", id: "listDuplicateGroups", tag: "Inputs", page: true,
		summary: "List groups of duplicates",
		note: "Lists groups of inputs that show the same, sorted by tier, then by creation; at most 100 groups per page. All groups " +
			"of the tier `same_file` are found immediately. For the other tiers, the server must search the neighbours of every " +
			"input. One call does this for 100 inputs: repeat it until `examined` equals `of`.",
		query:  []object{queryParameter("tier", text(oneOf(search.Tiers[:]...)), "Omitted: all tiers.")},
		answer: "DuplicateGroupsAnswer",
	},

	{
		method: "POST", path: "/models/searches", id: "searchModels", tag: "Models", page: true,
		summary: "Search models", note: "Finds custom and public models by name and type.",
		request: "ModelSearch", idle: true, answer: "ModelsAnswer",
		examples: []example{{"by the start of the name", `{"model_query":{"name":"general*","type":"concept"}}`}},
	},
	{
		method: "GET", path: "/models", id: "listModels", tag: "Models", page: true,
		summary: "List models", note: "Lists the custom models in order of creation, then the public models.",
		answer: "ModelsAnswer",
	},
	{
		method: "POST", path: "/models", id: "createModel", tag: "Models", writes: true,
		summary: "Create a model", note: "Creates a custom model with its first version, which is not trained yet. Label inputs with the concepts of the model, " +
			"then train it with POST /models/{model_id}/versions.",
		request: "CreateModel", answer: "CreatedModelAnswer",
		examples: []example{{"with two concepts", `{"model":{"id":"weather","name":"Weather","output_info":{"data":{"concepts":[{"id":"warm"},{"id":"cold"}]},"output_config":{"concepts_mutually_exclusive":false,"closed_environment":false}}}}`}},
	},
	{
		method: "PATCH", path: "/models", id: "patchModels", tag: "Models", writes: true,
		summary: "Change models",
		note: "Changes names, settings and concepts of models. If the concepts change, the model gets a new version, which is not " +
			"trained yet. The call changes either all models or none.",
		request: "PatchModels", answer: "ModelsAnswer",
		examples: []example{
			{"add a concept", `{"action":"merge","models":[{"id":"weather","output_info":{"data":{"concepts":[{"id":"foggy"}]}}}]}`},
			{"rename", `{"models":[{"id":"weather","name":"Weather at the lake"}]}`},
		},
	},
	{
		method: "DELETE", path: "/models", id: "deleteModels", tag: "Models", writes: true,
		summary: "Delete models",
		note: "Without a body, the call deletes all custom models of the application. This cannot be undone. " +
			"Unknown IDs are ignored. At a replica that is not in sync they are an error (404), and nothing is deleted: the origin may have the models.",
		request: "DeleteModels", idle: true, answer: "Done",
		examples: []example{{"some", `{"ids":["weather"]}`}, {"all", `{"delete_all":true}`}},
	},
	{
		method: "GET", path: "/models/{model_id}", id: "readModel", tag: "Models",
		summary: "Get a model",
		note:    "Returns a model with its latest version and the status of that version.", answer: "ModelAnswer",
	},
	{
		method: "DELETE", path: "/models/{model_id}", id: "deleteModel", tag: "Models", writes: true,
		summary: "Delete a model", note: "Deletes the model and all its versions. This cannot be undone. Labels of inputs stay.", answer: "Done",
	},
	{
		method: "GET", path: "/models/{model_id}/output_info", id: "readOutputInfo", tag: "Models",
		summary: "Get the concepts of a model",
		note:    "Returns a model with the concepts and settings of its latest version.", answer: "ModelConceptsAnswer",
	},
	{
		method: "PATCH", path: "/models/{model_id}/output_info/data/concepts", id: "patchModelConcepts", tag: "Models", writes: true,
		summary: "Change the concepts of a model",
		note: "Adds, replaces or removes concepts of one model. This is an older form, from 2016. PATCH /models does the same for " +
			"several models.",
		request: "PatchModelConcepts", answer: "ModelAnswer",
		examples: []example{{"add a concept", `{"action":"merge_concepts","concepts":[{"id":"foggy"}]}`}},
	},
	{
		method: "GET", path: "/models/{model_id}/inputs", id: "listModelInputs", tag: "Models", page: true,
		summary: "List the training set", note: "Lists the inputs that have a label for at least one concept of the model.",
		answer: "InputsAnswer",
	},
	{
		method: "GET", path: "/models/{model_id}/training_set", id: "readTrainingSet", tag: "Models",
		summary: "Get a summary of the training set", note: "Returns how many inputs have labels for each concept of the model, with at most one piece of advice.", answer: "TrainingSetAnswer",
	},
	{
		method: "GET", path: "/models/{model_id}/next", id: "listNext", tag: "Models", page: true,
		summary: "List inputs to label next",
		note: "Lists inputs that have no label for any concept of the model, most useful first. A useful input represents many " +
			"others: they are more similar to it than to the labelled inputs and to those before it in the list. Inputs that the " +
			"latest trained version is unsure about count more. If there are more than 4,096 such inputs, the list is made from a " +
			"fixed sample of them. It ends after 1,000 inputs.",
		answer: "NextAnswer",
	},
	{
		method: "POST", path: "/models/{model_id}/feedback", id: "modelFeedback", tag: "Models", writes: true,
		summary: "Send feedback on a prediction", note: "Reports the right concepts of a prediction. Feedback is stored; it does not change the model. To improve a model, " +
			"label inputs and train it again.",
		request: "Feedback", answer: "Done",
		examples: []example{{"a wrong concept", modelFeedbackExample}},
	},
	{
		method: "POST", path: "/models/{model_id}/versions", id: "trainModel", tag: "Models", writes: true,
		summary: "Train a model",
		note: "Queues the training of a new version on the labelled inputs. Poll GET /models/{model_id}/versions/{version_id}: the " +
			"status is 21103 while the version waits, and 21100 once it is trained, usually some seconds later. Codes 21110 to " +
			"21115 give the reason why a training failed. The request body is ignored.",
		answer: "TrainingAnswer",
	},
	{
		method: "GET", path: "/models/{model_id}/versions", id: "listVersions", tag: "Models", page: true,
		summary: "List the versions of a model",
		note:    "Lists the versions of a model, newest first, each with its status.", answer: "ModelVersionsAnswer",
		query: []object{show},
	},
	{
		method: "GET", path: "/models/{model_id}/versions/{version_id}", id: "readVersion", tag: "Models",
		summary: "Get a version", note: "Returns a version. Its status is 21100 once it is trained; other codes show that it waits, or why it failed.", answer: "ModelVersionAnswer",
		query: []object{show},
	},
	{
		method: "DELETE", path: "/models/{model_id}/versions/{version_id}", id: "deleteVersion", tag: "Models", writes: true,
		summary: "Delete a version",
		note: "Deletes one version of a custom model. This cannot be undone. Predictions with the model then use its latest trained " +
			"version.", answer: "Done",
	},
	{
		method: "GET", path: "/models/{model_id}/versions/{version_id}/output_info", id: "readVersionOutputInfo", tag: "Models",
		summary: "Get the concepts of a version",
		note:    "Returns a model with the concepts and settings of this version.", answer: "ModelConceptsAnswer",
	},
	{
		method: "GET", path: "/models/{model_id}/versions/{version_id}/inputs", id: "listVersionInputs", tag: "Models", page: true,
		summary: "List the training inputs of a version",
		note: "Lists the inputs that the version was trained on, with the labels that they had at the time of the training. An input " +
			"that was deleted since has its ID, the time of its creation and these labels, and status 30102.",
		answer: "InputsAnswer",
	},
	{
		method: "POST", path: "/models/{model_id}/versions/{version_id}/feedback", id: "versionFeedback", tag: "Models", writes: true,
		summary: "Send feedback on a prediction of a version", note: "Reports the right concepts of a prediction by this version. Feedback is stored; it does not change the model.",
		request: "Feedback", answer: "Done",
		examples: []example{{"a wrong concept", modelFeedbackExample}},
	},
	{
		method: "POST", path: "/models/{model_id}/versions/{version_id}/metrics", id: "evaluateVersion", tag: "Models",
		summary: "Evaluate a version",
		note:    "Returns the evaluation of a version. The evaluation is part of the training, so its results can be read immediately.",
		request: "EvaluateRequest", idle: true, answer: "MetricsAnswer",
		query:    []object{show},
		examples: []example{{"with the digest of the training", `{"show":["digest"]}`}},
	},
	{
		method: "GET", path: "/models/{model_id}/versions/{version_id}/metrics", id: "readMetrics", tag: "Models",
		summary: "Get the evaluation of a version",
		note: "Returns how well the version predicts pictures that it was not trained on: precision, recall and cut-off of each " +
			"concept. Public models have no evaluation; for them the call fails with 400.", answer: "MetricsAnswer",
		query: []object{show},
	},
	{
		method: "GET", path: "/models/{model_id}/versions/{version_id}/comparison", id: "compareVersions", tag: "Models", page: true,
		summary: "Compare two versions",
		note: "Compares the predictions of both versions for all analysed inputs. A version predicts a concept as present if the value " +
			"reaches the version's own cut-off. `with` names the other version; by default it is the version trained before this one.",
		query:  []object{queryParameter("with", text(), "ID of another trained version of the model.")},
		answer: "ComparisonAnswer",
	},

	{
		method: "POST", path: "/concepts/searches", id: "searchConcepts", tag: "Concepts", page: true,
		summary: "Search concepts by name",
		note: "Finds concepts by the start of their name, in one of 23 languages. End the name with `*`; without it, the name must be " +
			"equal.", request: "ConceptSearch", answer: "ConceptsAnswer",
		examples: []example{
			{"by the start of the name", `{"concept_query":{"name":"dog*"}}`},
			{"in Chinese, the second page", `{"concept_query":{"name":"狗*","language":"zh"},"pagination":{"page":2,"per_page":3}}`},
		},
	},
	{
		method: "POST", path: "/concepts", id: "createConcepts", tag: "Concepts", writes: true,
		summary: "Create concepts",
		note:    "Creates custom concepts. The call creates either all of them or none.", request: "NewConcepts", answer: "ConceptsAnswer",
		examples: []example{{"with a name", `{"concepts":[{"id":"cold","name":"Cold"}]}`}},
	},
	{
		method: "GET", path: "/concepts", id: "listConcepts", tag: "Concepts", page: true,
		summary: "List concepts",
		note:    "Lists the custom concepts in order of creation, then the concepts of the general model.", answer: "ConceptsAnswer",
	},
	{
		method: "PATCH", path: "/concepts", id: "renameConcepts", tag: "Concepts", writes: true,
		summary: "Rename concepts",
		note:    "Renames custom concepts. The call renames either all of them or none.", request: "RenameConcepts", answer: "ConceptsAnswer",
		examples: []example{{"rename", `{"action":"overwrite","concepts":[{"id":"cold","name":"Cold colours"}]}`}},
	},
	{
		method: "GET", path: "/concepts/usage", id: "readConceptUsage", tag: "Concepts", page: true,
		summary: "Get concept usage",
		note: "Lists all custom concepts, and the concepts of the general model that are a label of an input, predicted for an input, or " +
			"part of a custom model.",
		query: []object{
			queryParameter("language", language, "Language of the names. Default: the application's."),
			queryParameter("q", text(), "Start of the name."),
		},
		answer: "UsageAnswer",
	},
	{
		method: "GET", path: "/concepts/{concept_id}", id: "readConcept", tag: "Concepts",
		summary: "Get a concept",
		note:    "Returns the name and the creation time of a concept.", answer: "ConceptAnswer",
	},
	{
		method: "DELETE", path: "/concepts/{concept_id}", id: "deleteConcept", tag: "Concepts", writes: true,
		summary: "Delete a concept",
		note: "Deletes a custom concept that nothing uses. Labels of inputs, present or absent, models, versions and edits of predictions use " +
			"concepts; the error has their numbers. The next use of the ID creates the concept again, also one by another replica at the same time. An " +
			"extension of Sightline.",
		answer: "Done",
	},

	{
		method: "POST", path: "/searches", id: "searchInputs", tag: "Searches", page: true,
		summary: "Search inputs",
		note: "Finds inputs that match all clauses; there are at most 64. `input` clauses (labels, metadata, location, URL) see " +
			"changes immediately. `output` clauses (predictions, similarity) match an input once it has been analysed.",
		request: "SearchRequest", idle: true, answer: "HitsAnswer",
		examples: []example{
			{"by a predicted concept", `{"query":{"ands":[{"output":{"data":{"concepts":[{"name":"insect"}]}}}]},"pagination":{"page":1,"per_page":10}}`},
			{"by a label and metadata", `{"query":{"ands":[{"input":{"data":{"concepts":[{"name":"bird","value":false}]}}},{"input":{"data":{"metadata":{"album":"pond"}}}}]}}`},
			{"by similarity to a picture", `{"query":{"ands":[{"output":{"input":{"data":{"image":{"base64":"` + redPNG + `"}}}}}],"min_score":0.65}}`},
			{"around a location", `{"query":{"ands":[{"input":{"data":{"geo":{"geo_point":{"longitude":13.4,"latitude":52.5},"geo_limit":{"type":"withinKilometers","value":10}}}}}]}}`},
			{"within a box, German names", `{"query":{"language":"de","ands":[{"output":{"data":{"concepts":[{"name":"Insekt"}]}}},{"input":{"data":{"geo":{"geo_box":[{"geo_point":{"longitude":5.9,"latitude":47.3}},{"geo_point":{"longitude":15.0,"latitude":55.1}}]}}}}]}}`},
			{"by URL", `{"query":{"ands":[{"input":{"data":{"image":{"url":"https://pictures.example/dragonfly.jpg"}}}}]}}`},
		},
	},
	{
		method: "POST", path: "/searches/summary", id: "summariseSearch", tag: "Searches",
		summary: "Summarise a search",
		note: "Returns aggregates over all matches instead of a page of them: their number, the distribution of their scores with a " +
			"suggested minimum, their days and their locations.",
		request: "SummaryRequest", idle: true, answer: "SummaryAnswer",
		examples: []example{
			{"all inputs", `{"summary":{"days":{"utc_offset":60},"places":{"zoom":5}}}`},
			{"by similarity to a picture", `{"query":{"ands":[{"output":{"input":{"id":"dragonfly"}}}]},"summary":{"scores":{"bins":60}}}`},
			{"a predicted concept within a box", `{"query":{"ands":[{"output":{"data":{"concepts":[{"name":"insect"}]}}}]},"summary":{"scores":{},"places":{"zoom":8,"box":[47.3,5.9,55.1,15]}}}`},
		},
	},
	{
		method: "POST", path: "/searches/feedback", id: "searchFeedback", tag: "Searches", writes: true,
		summary: "Send feedback on a search result",
		note:    "Reports which result the user opened. Feedback is stored; it does not change searches.",
		request: "SearchFeedback", answer: "Done",
		examples: []example{{"a click", `{"input":{"id":"dragonfly","feedback_info":{"event_type":"search_click","search_id":"5dba834e1d9c758f8731932c00e163dd","end_user_id":"a-user","session_id":"a-session"}}}`}},
	},

	{
		method: "POST", path: "/workflows", id: "createWorkflows", tag: "Workflows", writes: true,
		summary: "Create workflows",
		note:    "Creates workflows. The call creates either all of them or none.", request: "NewWorkflows", answer: "WorkflowsAnswer",
		examples: []example{{"general concepts and colours", `{"workflows":[{"id":"both","nodes":[{"id":"general","model":{"id":"aaa03c23b3724a16a56b629203edc62c","model_version":{"id":"aa9ca48295b37401f8af92ad1af0d91d"}}},{"id":"color","model":{"id":"eeed0b6733a644cea07cf4c60f87ebb7"}}]}]}`}},
	},
	{
		method: "GET", path: "/workflows", id: "listWorkflows", tag: "Workflows", page: true,
		summary: "List workflows", note: "Lists the workflows of the application in order of creation.", answer: "WorkflowsAnswer",
	},
	{
		method: "GET", path: "/public_workflows", id: "listPublicWorkflows", tag: "Workflows", page: true,
		summary: "List public workflows",
		note:    "Lists the workflows that every application can use.", answer: "WorkflowsAnswer",
	},
	{
		method: "GET", path: "/workflows/{workflow_id}", id: "readWorkflow", tag: "Workflows",
		summary: "Get a workflow",
		note:    "Returns a workflow with its models.", answer: "WorkflowAnswer",
	},
	{
		method: "DELETE", path: "/workflows/{workflow_id}", id: "deleteWorkflow", tag: "Workflows", writes: true,
		summary: "Delete a workflow",
		note:    "Deletes a workflow. Its models stay.", answer: "Done",
	},
	{
		method: "POST", path: "/workflows/{workflow_id}/results", id: "runWorkflow", tag: "Workflows",
		summary: "Predict with a workflow", note: "Runs pictures and videos through all models of a workflow. Each picture, and each frame of a video, is analysed once " +
			"for all models.",
		request: "RunWorkflow", answer: "ResultsAnswer", items: "ResultsAnswer", writes: true,
		examples: []example{{"a picture in base64", `{"inputs":[{"data":{"image":{"base64":"` + redPNG + `"}}}],"output_config":{"max_concepts":3}}`}},
	},

	{
		method: "POST", path: "/token", id: "issueToken", tag: "Access",
		summary: "Get an access token",
		note: "Returns an access token, which programs send instead of a key. The call uses Basic authentication with the client ID " +
			"and client secret of an application. The request body is ignored; older clients send `grant_type=client_credentials`.",
		answer: "TokenAnswer",
	},
	{
		method: "POST", path: "/login", id: "login", tag: "Access", short: true,
		summary: "Get a session token", note: "Returns a session token of an account, for scripts that create applications and keys. People sign in on the web pages.",
		request: "Login", answer: "LoginAnswer",
		examples: []example{{"an account", `{"email":"anna@example.com","password":"anna's password"}`}},
	},
	{
		method: "POST", path: "/users/{user_id}/apps", id: "createApp", tag: "Access", writes: true, short: true,
		summary: "Create an application",
		note:    "Creates one application. The call requires a session token; API keys and access tokens are rejected.",
		request: "NewApps", answer: "AppsAnswer",
		examples: []example{{"in German", `{"apps":[{"name":"garden","default_language":"de"}]}`}},
	},
	{
		method: "GET", path: "/users/{user_id}/apps", id: "listApps", tag: "Access", page: true, short: true,
		summary: "List the applications of the account",
		note:    "Lists the applications of the account. The call requires a session token.", answer: "AppsAnswer",
	},
	{
		method: "GET", path: "/users/{user_id}/apps/{app_id}", id: "readApp", tag: "Access", short: true,
		summary: "Get an application",
		note:    "Returns an application of the account. The call requires a session token.", answer: "AppAnswer",
	},
	{
		method: "POST", path: "/users/{user_id}/keys", id: "createKey", tag: "Access", writes: true, short: true,
		summary: "Create an API key",
		note: "Creates one API key. The call requires a session token. The `id` in the response is the key itself. It is not shown " +
			"again.",
		request: "NewKeys", answer: "KeysAnswer",
		examples: []example{{"to predict and search", `{"keys":[{"description":"camera at the pond","scopes":["Predict","Search","Inputs_Get"],"apps":[{"id":"00000000000000010000000000000002","user_id":"me"}]}]}`}},
	},
	{
		method: "GET", path: "/users/{user_id}/keys", id: "listKeys", tag: "Access", page: true, short: true,
		summary: "List the API keys of the account",
		note:    "Lists the keys of all applications of the account. Each `id` is the start of the hash and does not reveal the key.", answer: "KeysAnswer",
	},
	{
		method: "GET", path: "/scopes", id: "listScopes", tag: "Access",
		summary: "List the scopes that an API key can have",
		note:    "Lists the scopes that an API key can have.", answer: "ScopesAnswer",
	},
	{
		method: "GET", path: "/myscopes", id: "listMyScopes", tag: "Access",
		summary: "List the scopes of this credential",
		note:    "Lists the scopes of the credential that the request has.", answer: "ScopesAnswer",
	},

	{
		method: "GET", path: "/sync/status", id: "readCopyStatus", tag: "Replicas",
		summary: "Get the sync status of a replica",
		note: "Returns whether the replica reaches its origin, how far it has pulled the log, and how many operations wait to be " +
			"sent.", answer: "CopyAnswer",
	},
	{
		method: "GET", path: "/sync/outbox", id: "listOutbox", tag: "Replicas", page: true,
		summary: "List pending operations", note: "Lists the operations of this replica that the origin's log has not confirmed yet.",
		answer: "OutboxAnswer",
	},
	{
		method: "GET", path: "/sync/devices", id: "listDevices", tag: "Replicas", page: true,
		summary: "List devices",
		note: "Lists the origin of the application, its edges, and the browsers and folders that have a replica, each with its last contact. The origin " +
			"remembers browsers and folders for 90 days. A replica lists its origin and itself.",
		answer: "DevicesAnswer",
	},
	{
		method: "GET", path: "/sync/history", id: "listNewestOperations", tag: "Replicas", page: true,
		summary: "List the newest operations",
		note: "Lists the newest 50 operations of the application, without results of downloads and trainings. A replica lists its pending operations first, and then the " +
			"newest entries of the log that it stores.",
		answer: "NewestAnswer",
	},
	{
		method: "GET", path: "/sync/conflicts", id: "listConflicts", tag: "Replicas", page: true,
		summary: "List conflicts",
		note: "Lists the operations of this replica that were not applied as intended, with their content and the reason, and the contradictions of " +
			"the application: values whose makers did not know of each other's. An origin lists contradictions only. A conflict stays in the list " +
			"until somebody dismisses or decides it.",
		answer: "ConflictsAnswer",
	},
	{
		method: "PATCH", path: "/sync/conflicts/{conflict_id}", id: "decideConflict", tag: "Replicas", writes: true,
		summary: "Decide a contradiction",
		note:    "Sets one of the values of a contradiction again. This removes the contradiction from the list of every host.",
		request: "KeepValue", answer: "Done",
		examples: []example{{"the first value", `{"keep":0}`}},
	},
	{
		method: "DELETE", path: "/sync/conflicts/{conflict_id}", id: "dismissConflict", tag: "Replicas", writes: true,
		summary: "Dismiss a conflict",
		note: "Removes the conflict from the list of this replica. If it is a contradiction, the current value stays, and every host " +
			"removes it from its list. This cannot be undone.", answer: "Done",
	},
}

const modelFeedbackExample = `{"input":{"id":"dragonfly","data":{"image":{"url":"https://pictures.example/dragonfly.jpg"},"concepts":[{"id":"insect","value":true},{"id":"bird","value":false}]},"feedback_info":{"event_type":"annotation","output_id":"5dba834e1d9c758f8731932c00e163dd","end_user_id":"a-user","session_id":"a-session"}}}`

// Pictures of 8 by 8 pixels in one colour, as base64.
const (
	redPNG  = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR42mP4z8CAFTEMLQkAKP8/wc53yE8AAAAASUVORK5CYII="
	bluePNG = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEElEQVR42mNgYPiPAw0pCQCpcD/B/MtF/AAAAABJRU5ErkJggg=="
)

// pixelGIF is an animation of one pixel, first red for 4 s and then blue, as base64.
const pixelGIF = "R0lGODlhAQABAIAAAP8AAAAA/yH5BACQAQAALAAAAAABAAEAAAICRAEAIfkEAJABAAAsAAAAAAEAAQAAAgJMAQA7"
