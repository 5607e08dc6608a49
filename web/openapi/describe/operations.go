package describe

import "github.com/sightline-dev/sightline/core/search"

// tags are the groups of operations, in the order of the interface's documentation.
func tags() []object {
	var all []object
	for _, t := range [][2]string{
		{"Predict", "Run pictures through a model: up to 128 a call, each with its own status."},
		{"Inputs", "The pictures that an application keeps. They are analysed once and can then be searched and trained with."},
		{"Models", "Public models, and an application's own, which learn concepts from labelled inputs."},
		{"Concepts", "What models predict and users label pictures with: public ones in 23 languages, and an application's own."},
		{"Searches", "Find inputs by what is in them, what was said of them, where they are and what they look like."},
		{"Workflows", "Run pictures through several models at once."},
		{"Copies", "What a copy tells of itself: an edge, or a page that keeps one. An application that is no copy of another answers 404."},
		{"Sync", "The protocol between an origin and its copies, whose messages sync/README.md has byte by byte. For those who write one; everybody else writes to whichever copy is near."},
		{"Access", "Access tokens, sessions, applications and keys for scripts. People make applications and keys on the web pages."},
	} {
		all = append(all, object{{"name", t[0]}, {"description", t[1]}})
	}
	return all
}

// operations are the endpoints, in the order of core/api's table.
var operations = []operation{
	{
		method: "POST", path: "/models/{model_id}/outputs", id: "predict", tag: "Predict",
		summary: "Predict",
		note:    "Runs pictures through a model: a public one, or the newest trained version of an own one. A picture that cannot be had fails alone.",
		request: "PredictRequest", answer: "OutputsAnswer", items: "OutputsAnswer", writes: true,
		examples: []example{
			{"a picture by its address", `{"inputs":[{"data":{"image":{"url":"https://pictures.example/dragonfly.jpg"}}}]}`},
			{"a picture in base64", `{"inputs":[{"id":"red","data":{"image":{"base64":"` + redPNG + `"}}}]}`},
			{
				"German names, five of them, one half of the picture",
				`{"inputs":[{"data":{"image":{"base64":"` + redPNG + `","crop":[0,0,0.5,1]}}}],"model":{"output_info":{"output_config":{"language":"de","max_concepts":5,"min_value":0.5}}}}`,
			},
		},
	},
	{
		method: "POST", path: "/models/{model_id}/versions/{version_id}/outputs", id: "predictWithVersion", tag: "Predict",
		summary: "Predict with one version",
		request: "PredictRequest", answer: "OutputsAnswer", items: "OutputsAnswer", writes: true,
		examples: []example{{"a picture by its address", `{"inputs":[{"data":{"image":{"url":"https://pictures.example/dragonfly.jpg"}}}]}`}},
	},
	{
		method: "POST", path: "/models/{model_id}/activations", id: "readActivations", tag: "Predict",
		summary: "See where concepts are",
		note: "Says for each concept which cells of a grid over the picture speak for it: of the general and the food model, and of the newest trained version of an own one. " +
			"An input that the application keeps is named by its id, for which the key needs Inputs:Get.",
		request: "ActivationsRequest", answer: "ActivationsAnswer", items: "ActivationsAnswer", writes: true,
		examples: []example{
			{"a picture by its address", `{"inputs":[{"data":{"image":{"url":"https://pictures.example/dragonfly.jpg"}}}],"concepts":["ai_2k5mzj3r"]}`},
			{"an input that the application keeps", `{"inputs":[{"id":"dragonfly"}],"concepts":["ai_2k5mzj3r"]}`},
		},
	},

	{
		method: "POST", path: "/inputs", id: "addInputs", tag: "Inputs",
		summary: "Add inputs",
		note: "Keeps pictures in the application's index. One that comes by URL is answered at once with 30001 and fetched in the background; " +
			"one that comes as base64 is analysed within the call.",
		request: "AddInputs", answer: "InputItemsAnswer", items: "InputItemsAnswer", writes: true,
		examples: []example{
			{"by address, with labels, metadata and a place", `{"inputs":[{"id":"dragonfly","data":{"image":{"url":"https://pictures.example/dragonfly.jpg"},"concepts":[{"id":"insect","value":true},{"id":"bird","value":false}],"metadata":{"album":"pond","year":2016},"geo":{"geo_point":{"longitude":13.4,"latitude":52.5}}}}]}`},
			{"in base64", `{"inputs":[{"id":"red","data":{"image":{"base64":"` + redPNG + `"},"concepts":[{"id":"warm"},{"id":"cold","value":false}]}},{"id":"blue","data":{"image":{"base64":"` + bluePNG + `"},"concepts":[{"id":"warm","value":false},{"id":"cold"}]}}]}`},
			{"part of a picture, again", `{"inputs":[{"data":{"image":{"url":"https://pictures.example/dragonfly.jpg","crop":[0.2,0.4,0.6,0.8],"allow_duplicate_url":true}}}]}`},
		},
	},
	{
		method: "GET", path: "/inputs", id: "listInputs", tag: "Inputs", page: true,
		summary: "List inputs", note: "In the order of their creation. A page with one whose download failed is answered with HTTP 207.",
		answer: "InputsAnswer", items: "InputsAnswer",
	},
	{
		method: "PATCH", path: "/inputs", id: "patchInputs", tag: "Inputs", writes: true,
		summary: "Change inputs", note: "Labels, metadata and places of up to 128 inputs.",
		request: "PatchInputs", answer: "InputItemsAnswer", items: "InputItemsAnswer",
		examples: []example{
			{"label", `{"action":"merge","inputs":[{"id":"dragonfly","data":{"concepts":[{"id":"insect","value":true}]}}]}`},
			{"take a label away", `{"action":"remove","inputs":[{"id":"dragonfly","data":{"concepts":[{"id":"insect"}]}}]}`},
			{"metadata and a place", `{"action":"merge","inputs":[{"id":"dragonfly","data":{"metadata":{"album":"lake"},"geo":{"geo_point":{"longitude":8.5,"latitude":47.4}}}}]}`},
		},
	},
	{
		method: "DELETE", path: "/inputs", id: "deleteInputs", tag: "Inputs", writes: true,
		summary: "Delete inputs", request: "DeleteInputs", answer: "Done",
		examples: []example{{"some", `{"ids":["dragonfly","red"]}`}, {"all", `{"delete_all":true}`}},
	},
	{
		method: "GET", path: "/inputs/status", id: "countInputs", tag: "Inputs",
		summary: "Count inputs by their status", answer: "CountsAnswer",
	},
	{
		method: "GET", path: "/inputs/{input_id}", id: "readInput", tag: "Inputs",
		summary: "Read an input", answer: "InputAnswer",
	},
	{
		method: "DELETE", path: "/inputs/{input_id}", id: "deleteInput", tag: "Inputs", writes: true,
		summary: "Delete an input", answer: "Done",
	},
	{
		method: "PATCH", path: "/inputs/{input_id}/data/concepts", id: "patchInputConcepts", tag: "Inputs", writes: true,
		summary: "Change an input's labels", note: "The form of 2016; PATCH /inputs does the same for many.",
		request: "PatchConcepts", idle: true, answer: "InputAnswer",
		examples: []example{{"label", `{"action":"merge_concepts","concepts":[{"id":"insect","value":true}]}`}},
	},
	{
		method: "GET", path: "/inputs/{input_id}/outputs", id: "readInputOutputs", tag: "Inputs",
		summary: "Read what the general model says of an input", answer: "StoredOutputsAnswer",
	},
	{
		method: "PATCH", path: "/inputs/{input_id}/outputs", id: "patchInputOutputs", tag: "Inputs", writes: true,
		summary: "Correct what the general model says of an input", note: "Searches by predicted concepts go by the corrected values.",
		request: "PatchOutputs", answer: "StoredOutputsAnswer",
		examples: []example{{"set a value", `{"action":"merge","outputs":[{"data":{"concepts":[{"id":"ai_2k5mzj3r","value":0.5}]}}]}`}},
	},
	{
		method: "GET", path: "/inputs/{input_id}/thumbnail", id: "readThumbnail", tag: "Inputs", picture: true,
		summary: "Read a small JPEG of an input", note: "Cropped as the input is. 404 until the picture has been analysed.",
	},
	{
		method: "GET", path: "/inputs/{input_id}/source", id: "readSource", tag: "Inputs",
		summary: "Read what an export needs of an input", answer: "SourceAnswer",
	},
	{
		method: "GET", path: "/inputs/{input_id}/history", id: "readHistory", tag: "Inputs", page: true,
		summary: "Read what was done to an input", note: "By whom, when, and at which place in the log. Of an input that was deleted, its deletion alone.", answer: "HistoryAnswer",
	},

	{
		method: "GET", path: "/inputs/{input_id}/duplicates", id: "listDuplicates", tag: "Inputs", page: true,
		summary: "List an input's duplicates",
		note: "By tier, then by likeness: the same file (equal bytes and crop), re-encoded (one picture saved again in another format, quality or size, which the thumbnails " +
			"tell of the 24 most similar inputs), and similar (at least as alike as the cut-off that a search by likeness has). 1000 at most.",
		answer: "DuplicatesAnswer",
	},
	{
		method: "GET", path: "/duplicates", id: "listDuplicateGroups", tag: "Inputs", page: true,
		summary: "List groups of duplicates",
		note: "By tier, then in the order of creation; 100 groups a page at most. The same files are found at once. For the other tiers each input's neighbours must be looked for, " +
			"which a call does for 100 inputs: ask again until `examined` is `of`.",
		asks:   []object{asked("tier", text(oneOf(search.Tiers[:]...)), "Absent: all of them.")},
		answer: "DuplicateGroupsAnswer",
	},

	{
		method: "POST", path: "/models/searches", id: "searchModels", tag: "Models", page: true,
		summary: "Find models", note: "By name and type, own and public.",
		request: "ModelSearch", idle: true, answer: "ModelsAnswer",
		examples: []example{{"by the start of the name", `{"model_query":{"name":"general*","type":"concept"}}`}},
	},
	{
		method: "GET", path: "/models", id: "listModels", tag: "Models", page: true,
		summary: "List models", note: "The application's own in the order of their creation, then the public ones.",
		answer: "ModelsAnswer",
	},
	{
		method: "POST", path: "/models", id: "createModel", tag: "Models", writes: true,
		summary: "Make a model", note: "With its first version, which is not yet trained.",
		request: "CreateModel", answer: "CreatedModelAnswer",
		examples: []example{{"of two concepts", `{"model":{"id":"weather","name":"Weather","output_info":{"data":{"concepts":[{"id":"warm"},{"id":"cold"}]},"output_config":{"concepts_mutually_exclusive":false,"closed_environment":false}}}}`}},
	},
	{
		method: "PATCH", path: "/models", id: "patchModels", tag: "Models", writes: true,
		summary: "Change models", note: "Names, settings and concepts. A change of concepts makes a new version, which is not yet trained.",
		request: "PatchModels", answer: "ModelsAnswer",
		examples: []example{
			{"add a concept", `{"action":"merge","models":[{"id":"weather","output_info":{"data":{"concepts":[{"id":"foggy"}]}}}]}`},
			{"another name", `{"models":[{"id":"weather","name":"Weather at the lake"}]}`},
		},
	},
	{
		method: "DELETE", path: "/models", id: "deleteModels", tag: "Models", writes: true,
		summary: "Delete models", note: "Without a body all of the application's, for good.",
		request: "DeleteModels", idle: true, answer: "Done",
		examples: []example{{"some", `{"ids":["weather"]}`}, {"all", `{"delete_all":true}`}},
	},
	{
		method: "GET", path: "/models/{model_id}", id: "readModel", tag: "Models",
		summary: "Read a model", answer: "ModelAnswer",
	},
	{
		method: "DELETE", path: "/models/{model_id}", id: "deleteModel", tag: "Models", writes: true,
		summary: "Delete a model", note: "With all its versions.", answer: "Done",
	},
	{
		method: "GET", path: "/models/{model_id}/output_info", id: "readOutputInfo", tag: "Models",
		summary: "Read a model's concepts", answer: "ModelConceptsAnswer",
	},
	{
		method: "PATCH", path: "/models/{model_id}/output_info/data/concepts", id: "patchModelConcepts", tag: "Models", writes: true,
		summary: "Change a model's concepts", note: "The form of 2016; PATCH /models does the same for many.",
		request: "PatchModelConcepts", answer: "ModelAnswer",
		examples: []example{{"add a concept", `{"action":"merge_concepts","concepts":[{"id":"foggy"}]}`}},
	},
	{
		method: "GET", path: "/models/{model_id}/inputs", id: "listModelInputs", tag: "Models", page: true,
		summary: "List what a training would learn from", note: "Inputs with a label for any of the model's concepts.",
		answer: "InputsAnswer",
	},
	{
		method: "GET", path: "/models/{model_id}/training_set", id: "readTrainingSet", tag: "Models",
		summary: "Read what a training would learn from", note: "With one piece of advice at most.", answer: "TrainingSetAnswer",
	},
	{
		method: "GET", path: "/models/{model_id}/next", id: "listNext", tag: "Models", page: true,
		summary: "List what to label next",
		note: "Inputs of which nobody has said whether they show a concept of the model, those first that would teach it most: of which its newest trained version is " +
			"unsure, and which are unlike what is labelled and unlike those before them. Of more than 4,096 such inputs a fixed sample is looked at; the list ends after 1,000.",
		answer: "NextAnswer",
	},
	{
		method: "POST", path: "/models/{model_id}/feedback", id: "modelFeedback", tag: "Models", writes: true,
		summary: "Say what a prediction should have been", note: "It is kept, and changes nothing by itself.",
		request: "Feedback", answer: "Done",
		examples: []example{{"a wrong concept", modelFeedbackExample}},
	},
	{
		method: "POST", path: "/models/{model_id}/versions", id: "trainModel", tag: "Models", writes: true,
		summary: "Train a model", note: "Queues a new version, which is at 21103 until it is trained, some seconds later. A body does not matter.",
		answer: "ModelAnswer",
	},
	{
		method: "GET", path: "/models/{model_id}/versions", id: "listVersions", tag: "Models", page: true,
		summary: "List a model's versions", answer: "ModelVersionsAnswer",
	},
	{
		method: "GET", path: "/models/{model_id}/versions/{version_id}", id: "readVersion", tag: "Models",
		summary: "Read a version", note: "Its status says whether the training is done.", answer: "ModelVersionAnswer",
	},
	{
		method: "DELETE", path: "/models/{model_id}/versions/{version_id}", id: "deleteVersion", tag: "Models", writes: true,
		summary: "Delete a version", answer: "Done",
	},
	{
		method: "GET", path: "/models/{model_id}/versions/{version_id}/output_info", id: "readVersionOutputInfo", tag: "Models",
		summary: "Read a version's concepts", answer: "ModelConceptsAnswer",
	},
	{
		method: "GET", path: "/models/{model_id}/versions/{version_id}/inputs", id: "listVersionInputs", tag: "Models", page: true,
		summary: "List what a version learned from", note: "With the labels that they had then.", answer: "InputsAnswer",
	},
	{
		method: "POST", path: "/models/{model_id}/versions/{version_id}/feedback", id: "versionFeedback", tag: "Models", writes: true,
		summary: "Say what a version's prediction should have been",
		request: "Feedback", answer: "Done",
		examples: []example{{"a wrong concept", modelFeedbackExample}},
	},
	{
		method: "POST", path: "/models/{model_id}/versions/{version_id}/metrics", id: "evaluateVersion", tag: "Models",
		summary: "Evaluate a version", note: "It comes with the training: read it at once. A body does not matter.",
		answer: "MetricsAnswer",
	},
	{
		method: "GET", path: "/models/{model_id}/versions/{version_id}/metrics", id: "readMetrics", tag: "Models",
		summary: "Read how well a version does", note: "Public models have no evaluation: 400.", answer: "MetricsAnswer",
	},
	{
		method: "GET", path: "/models/{model_id}/versions/{version_id}/comparison", id: "compareVersions", tag: "Models", page: true,
		summary: "Compare two versions",
		note:    "What they say of all analysed inputs: a concept is present from a version's own cut-off on. `with` names the other version; without it that is the one trained before.",
		asks:    []object{asked("with", text(), "Another trained version of the model.")},
		answer:  "ComparisonAnswer",
	},

	{
		method: "POST", path: "/concepts/searches", id: "searchConcepts", tag: "Concepts", page: true,
		summary: "Find concepts by name", request: "ConceptSearch", answer: "ConceptsAnswer",
		examples: []example{
			{"by the start of the name", `{"concept_query":{"name":"dog*"}}`},
			{"in Chinese, the second page", `{"concept_query":{"name":"狗*","language":"zh"},"pagination":{"page":2,"per_page":3}}`},
		},
	},
	{
		method: "POST", path: "/concepts", id: "createConcepts", tag: "Concepts", writes: true,
		summary: "Make concepts", note: "All of the call's, or none.", request: "NewConcepts", answer: "ConceptsAnswer",
		examples: []example{{"with a name", `{"concepts":[{"id":"cold","name":"Cold"}]}`}},
	},
	{
		method: "GET", path: "/concepts", id: "listConcepts", tag: "Concepts", page: true,
		summary: "List concepts", note: "The application's own in the order of their creation, then those of the general model.", answer: "ConceptsAnswer",
	},
	{
		method: "PATCH", path: "/concepts", id: "renameConcepts", tag: "Concepts", writes: true,
		summary: "Rename concepts", note: "Own ones: all of the call's, or none.", request: "RenameConcepts", answer: "ConceptsAnswer",
		examples: []example{{"another name", `{"action":"overwrite","concepts":[{"id":"cold","name":"Cold colours"}]}`}},
	},
	{
		method: "GET", path: "/concepts/usage", id: "readConceptUsage", tag: "Concepts", page: true,
		summary: "Read what concepts are used for",
		note:    "The application's own, and those of the general model that are said or predicted of an input, or part of an own model.",
		asks: []object{
			asked("language", language, "Of the names; the application's where absent."),
			asked("q", text(), "The start of the name."),
		},
		answer: "UsageAnswer",
	},
	{
		method: "GET", path: "/concepts/{concept_id}", id: "readConcept", tag: "Concepts",
		summary: "Read a concept", answer: "ConceptAnswer",
	},

	{
		method: "POST", path: "/searches", id: "searchInputs", tag: "Searches", page: true,
		summary: "Find inputs",
		note:    "By up to 64 clauses, all of which must hold. Clauses about what was said of an input see it at once; those about what is in it once it has been analysed.",
		request: "SearchRequest", idle: true, answer: "HitsAnswer",
		examples: []example{
			{"by a predicted concept", `{"query":{"ands":[{"output":{"data":{"concepts":[{"name":"insect"}]}}}]},"pagination":{"page":1,"per_page":10}}`},
			{"by a label and metadata", `{"query":{"ands":[{"input":{"data":{"concepts":[{"name":"bird","value":false}]}}},{"input":{"data":{"metadata":{"album":"pond"}}}}]}}`},
			{"by likeness to a picture", `{"query":{"ands":[{"output":{"input":{"data":{"image":{"base64":"` + redPNG + `"}}}}}]}}`},
			{"around a place", `{"query":{"ands":[{"input":{"data":{"geo":{"geo_point":{"longitude":13.4,"latitude":52.5},"geo_limit":{"type":"withinKilometers","value":10}}}}}]}}`},
			{"within a box, German names", `{"query":{"language":"de","ands":[{"output":{"data":{"concepts":[{"name":"Insekt"}]}}},{"input":{"data":{"geo":{"geo_box":[{"geo_point":{"longitude":5.9,"latitude":47.3}},{"geo_point":{"longitude":15.0,"latitude":55.1}}]}}}}]}}`},
			{"by address", `{"query":{"ands":[{"input":{"data":{"image":{"url":"https://pictures.example/dragonfly.jpg"}}}}]}}`},
		},
	},
	{
		method: "POST", path: "/searches/summary", id: "summariseSearch", tag: "Searches",
		summary: "Summarise a search",
		note:    "What all the matches come to, in place of a page of them: how many there are, how their scores lie and from which on they are likely meant, of which days and where they are.",
		request: "SummaryRequest", idle: true, answer: "SummaryAnswer",
		examples: []example{
			{"everything there is", `{"summary":{"days":{"utc_offset":60},"places":{"zoom":5}}}`},
			{"by likeness to a picture", `{"query":{"ands":[{"output":{"input":{"id":"dragonfly"}}}]},"summary":{"scores":{"bins":60}}}`},
			{"a predicted concept within a box", `{"query":{"ands":[{"output":{"data":{"concepts":[{"name":"insect"}]}}}]},"summary":{"scores":{},"places":{"zoom":8,"box":[47.3,5.9,55.1,15]}}}`},
		},
	},
	{
		method: "POST", path: "/searches/feedback", id: "searchFeedback", tag: "Searches", writes: true,
		summary: "Say which hit was looked at", note: "It is kept, and changes nothing by itself.",
		request: "SearchFeedback", answer: "Done",
		examples: []example{{"a click", `{"input":{"id":"dragonfly","feedback_info":{"event_type":"search_click","search_id":"5dba834e1d9c758f8731932c00e163dd","end_user_id":"a-user","session_id":"a-session"}}}`}},
	},

	{
		method: "POST", path: "/workflows", id: "createWorkflows", tag: "Workflows", writes: true,
		summary: "Make workflows", note: "All of the call's, or none.", request: "NewWorkflows", answer: "WorkflowsAnswer",
		examples: []example{{"general concepts and colours", `{"workflows":[{"id":"both","nodes":[{"id":"general","model":{"id":"aaa03c23b3724a16a56b629203edc62c","model_version":{"id":"aa9ca48295b37401f8af92ad1af0d91d"}}},{"id":"color","model":{"id":"eeed0b6733a644cea07cf4c60f87ebb7"}}]}]}`}},
	},
	{
		method: "GET", path: "/workflows", id: "listWorkflows", tag: "Workflows", page: true,
		summary: "List workflows", note: "The application's own, in the order of their creation.", answer: "WorkflowsAnswer",
	},
	{
		method: "GET", path: "/public_workflows", id: "listPublicWorkflows", tag: "Workflows", page: true,
		summary: "List public workflows", answer: "WorkflowsAnswer",
	},
	{
		method: "GET", path: "/workflows/{workflow_id}", id: "readWorkflow", tag: "Workflows",
		summary: "Read a workflow", answer: "WorkflowAnswer",
	},
	{
		method: "DELETE", path: "/workflows/{workflow_id}", id: "deleteWorkflow", tag: "Workflows", writes: true,
		summary: "Delete a workflow", answer: "Done",
	},
	{
		method: "POST", path: "/workflows/{workflow_id}/results", id: "runWorkflow", tag: "Workflows",
		summary: "Predict with a workflow", note: "Each picture is analysed once, for all of the workflow's models.",
		request: "RunWorkflow", answer: "ResultsAnswer", items: "ResultsAnswer", writes: true,
		examples: []example{{"a picture in base64", `{"inputs":[{"data":{"image":{"base64":"` + redPNG + `"}}}],"output_config":{"max_concepts":3}}`}},
	},

	{
		method: "POST", path: "/token", id: "issueToken", tag: "Access",
		summary: "Get an access token",
		note: "By Basic authentication with an application's client id and client secret. A body does not matter; old clients send " +
			"`grant_type=client_credentials`.",
		answer: "TokenAnswer",
	},
	{
		method: "POST", path: "/login", id: "login", tag: "Access", short: true,
		summary: "Open a session", note: "For scripts; people sign in on the web pages.",
		request: "Login", answer: "LoginAnswer",
		examples: []example{{"an account", `{"email":"anna@example.com","password":"anna's password"}`}},
	},
	{
		method: "POST", path: "/users/{user_id}/apps", id: "createApp", tag: "Access", writes: true, short: true,
		summary: "Make an application", note: "One a call, with a session. Never with a key or an access token.",
		request: "NewApps", answer: "AppsAnswer",
		examples: []example{{"in German", `{"apps":[{"name":"garden","default_language":"de"}]}`}},
	},
	{
		method: "GET", path: "/users/{user_id}/apps", id: "listApps", tag: "Access", page: true, short: true,
		summary: "List the account's applications", answer: "AppsAnswer",
	},
	{
		method: "GET", path: "/users/{user_id}/apps/{app_id}", id: "readApp", tag: "Access", short: true,
		summary: "Read an application", answer: "AppAnswer",
	},
	{
		method: "POST", path: "/users/{user_id}/keys", id: "createKey", tag: "Access", writes: true, short: true,
		summary: "Make a key", note: "One a call, with a session. The answer's `id` is the key itself: here it is told, and never again.",
		request: "NewKeys", answer: "KeysAnswer",
		examples: []example{{"to predict and search", `{"keys":[{"description":"camera at the pond","scopes":["Predict","Search","Inputs_Get"],"apps":[{"id":"00000000000000010000000000000002","user_id":"me"}]}]}`}},
	},
	{
		method: "GET", path: "/users/{user_id}/keys", id: "listKeys", tag: "Access", page: true, short: true,
		summary: "List the keys of the account's applications", note: "Their `id` is the start of the key's hash, which says nothing of the key.", answer: "KeysAnswer",
	},
	{
		method: "GET", path: "/scopes", id: "listScopes", tag: "Access",
		summary: "List the scopes that a key can carry", answer: "ScopesAnswer",
	},
	{
		method: "GET", path: "/myscopes", id: "listMyScopes", tag: "Access",
		summary: "List one's own scopes", answer: "ScopesAnswer",
	},

	{
		method: "GET", path: "/sync/status", id: "readCopyStatus", tag: "Copies",
		summary: "Read where a copy stands with its origin", answer: "CopyAnswer",
	},
	{
		method: "GET", path: "/sync/outbox", id: "listOutbox", tag: "Copies", page: true,
		summary: "List what is not confirmed", note: "Operations that were made at this copy and that the origin's log has not brought back yet.",
		answer: "OutboxAnswer",
	},
	{
		method: "GET", path: "/sync/conflicts", id: "listConflicts", tag: "Copies", page: true,
		summary: "List what was not taken as it was meant", note: "Operations that were made at this copy, with all that they say and why: nothing vanishes silently. Each stays until it is dismissed.",
		answer: "ConflictsAnswer",
	},
	{
		method: "DELETE", path: "/sync/conflicts/{conflict_id}", id: "dismissConflict", tag: "Copies", writes: true,
		summary: "Dismiss a conflict", note: "It is taken off the list, here and for good.", answer: "Done",
	},
}

const modelFeedbackExample = `{"input":{"id":"dragonfly","data":{"image":{"url":"https://pictures.example/dragonfly.jpg"},"concepts":[{"id":"insect","value":true},{"id":"bird","value":false}]},"feedback_info":{"event_type":"annotation","output_id":"5dba834e1d9c758f8731932c00e163dd","end_user_id":"a-user","session_id":"a-session"}}}`

// Pictures of 8 by 8 pixels of one colour.
const (
	redPNG  = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR42mP4z8CAFTEMLQkAKP8/wc53yE8AAAAASUVORK5CYII="
	bluePNG = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEElEQVR42mNgYPiPAw0pCQCpcD/B/MtF/AAAAABJRU5ErkJggg=="
)
