package call

import "github.com/sightline-dev/sightline/core/log/form"

// Limits of a call.
const (
	MaxInputs      = 128  // inputs of one call that predicts, adds or changes inputs
	ShownConcepts  = 20   // concepts of one output without max_concepts
	DefaultPerPage = 20   // rows of a page
	MaxPerPage     = 1000 // a larger per_page has the same effect
	MaxIDs         = 1000 // ids of one call that deletes models

	MaxLabels    = form.MaxLabels    // labels of one input, and of one item of a call
	MaxConcepts  = form.MaxConcepts  // maximum max_concepts of one output
	MaxIDBytes   = form.MaxIDBytes   // length of an id
	MaxNameBytes = form.MaxNameBytes // length of a concept's or a model's name
	MaxURLBytes  = form.MaxURLBytes  // length of a picture's URL
	MaxSelected  = form.MaxSelected  // select_concepts of one call

	MaxActivatedInputs = 8  // inputs of one call for activations: the network returns a quarter of a megabyte for each
	MaxActivations     = 20 // concepts of one call for activations

	MaxModelConcepts  = form.MaxModelConcepts  // concepts of one custom model
	MaxSettingBytes   = form.MaxSettingBytes   // one field of a model's output_config
	MaxWorkflowInputs = 32                     // inputs of one workflow call
	MaxWorkflowModels = form.MaxWorkflowModels // models of one workflow

	MaxFeedbackBytes = form.MaxFeedbackBytes // one piece of feedback

	MaxPictureBytes = 64_000_000 // one picture sent as base64; raster.SizeLimit is lower for most kinds
	MaxVideoBytes   = 10_000_000 // one video sent as base64

	MaxVideos       = 4   // videos of one call
	MaxFrames       = 600 // frames of all videos of one call; each video may have an equal part of them
	DefaultSampleMS = 1000
)

// Approximate limits on the applications and keys that accounts create, over /v2 and on the pages. Two simultaneous calls may exceed them.
const (
	MaxApps = 200 // applications of an account
	MaxKeys = 500 // keys of an application
)
