package program

// This file has the parts of the answers of commands and of the API that the tests read.

// importOutput is the output of import --json.
type importOutput struct {
	Inputs, Added, There, Failed, Pending, Concepts, Models, Workflows, Renamed int

	OtherIDs int            `json:"other_ids"`
	LeftOut  map[string]int `json:"left_out"`
}

// inputCounts are the counts of /v2/inputs/status.
type inputCounts struct {
	Processed, Errors int
	ToProcess         int `json:"to_process"`
}

// trainedVersion is a version of a model.
type trainedVersion struct {
	ID, Digest string
	Status     struct{ Code int }
}

// Codes of a version in its status.
const (
	versionTrained  = 21100
	versionTraining = 21101
	versionQueued   = 21103
)
